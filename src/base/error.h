/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error codes and error texts. A function that can fail returns 0 or a negative code. errno and
 * libuv share one range (-errno, UV_E...); ours begin beyond it. Where a person has to act on an
 * error, a struct sw_error beside the code says what is wrong, where, and what to do.
 */
#ifndef SW_BASE_ERROR_H
#define SW_BASE_ERROR_H

#include <stdarg.h>

#include <slipway/attr.h>

enum {
    SW_E_FIRST = -20000,
    SW_E_TLS = -20000,         /* handshake or record failed */
    SW_E_CERTIFICATE = -19999, /* the peer's certificate was refused */
    SW_E_PROTOCOL = -19998,    /* the peer broke HTTP */
    SW_E_TOO_LARGE = -19997,   /* over one of our limits */
    SW_E_TRUNCATED = -19996,   /* the stream ended in the middle of a message */
    SW_E_SYNTAX = -19995,      /* malformed text: JSON, YAML, URL, selector, PEM */
    SW_E_CONFIG = -19994,      /* a configuration that cannot be used */
    SW_E_NOT_LEADER = -19993,  /* a write refused because another process leads */
    SW_E_STALE = -19992,       /* what was asked for is older than what is known */
    SW_E_ABI = -19991,         /* a module built for another core */
    SW_E_STATUS = -19990,      /* the API server answered with an error Status */
    SW_E_HELD = -19989,        /* refused: somebody holds the workload */
    SW_E_CREDENTIALS = -19988, /* nobody says who we are: the credential plugin failed */
    SW_E_LAST = -19988,
};

/* Text of any code: ours, errno's, libuv's. Never NULL. */
const char *sw_strerror(int code);

struct sw_error {
    int code;
    char text[480]; /* "" while there is none; cut at the end if too long */
};

/* Fills *error (which may be NULL) and returns code: return sw_error_set(e, -EINVAL, "...", ...).
 */
SW_PRINTF(3, 4) int sw_error_set(struct sw_error *error, int code, const char *format, ...);
/* Puts "prefix: " in front of the text that is there. */
SW_PRINTF(2, 3) void sw_error_prefix(struct sw_error *error, const char *format, ...);

#endif
