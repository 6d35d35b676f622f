/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the plugin: the loop, the client of the API server, and where what it says goes.
 * Requests are made one after the other, and waited for: a person does the same.
 *
 * Whatever is read lives until the session ends.
 */
#ifndef KS_SESSION_H
#define KS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "options.h"

struct sw_arena;
struct sw_client;
struct sw_credentials;
struct sw_intern;
struct sw_json;
struct sw_kind;
struct sw_loop;
struct sw_metrics;
struct sw_transport;

#define KS_FIELD_MANAGER "kubectl-slipway"

struct ks_session {
    const struct ks_options *options;
    struct sw_loop *loop;
    struct sw_log_sink *sink;
    struct sw_log log;
    struct sw_metrics *metrics;
    struct sw_credentials *credentials;
    struct sw_transport *transport;
    struct sw_client *client;
    struct sw_intern *intern;
    struct sw_arena *arena;
    struct sw_buf out; /* for standard output; ks_flush */
    bool is_coloured, is_utf8;
};

/* Reads the kubeconfig; sends nothing yet. ks_session_close either way. */
int ks_session_open(struct ks_session *session, const struct ks_options *options,
                    struct sw_error *error);
void ks_session_close(struct ks_session *session);

/* Of the flag, else of the context. NULL with -A. */
const char *ks_namespace(const struct ks_session *session);
bool ks_flag(const struct ks_session *session, enum ks_flag flag);
/* Was it named, or was nobody named? kind: "DeploymentCoordination", for those that were named with
 * theirs. */
bool ks_is_wanted(const struct ks_session *session, const char *kind, const char *name);
/* "?fieldManager=..." and dryRun where it is asked for: behind the path of a write. */
const char *ks_write_query(const struct ks_session *session);
int64_t ks_now_us(const struct ks_session *session);
/* Writes what is in out to standard output. False: nobody takes it. */
bool ks_flush(struct ks_session *session);
/* A line on standard error: "kubectl-slipway: ...". */
SW_PRINTF(1, 2) void ks_complain(const char *format, ...);

/* ---- requests ---- */

struct ks_answer {
    int status;       /* of HTTP; 0: there was none, and message says why */
    const char *body; /* whole, with a NUL */
    size_t body_len;
    const char *reason;  /* of the Status; "" */
    const char *message; /* for people, with status 0 or >= 400 */
};

/* body NULL: none. deadline_ms 0: 60 s. True where the status is 2xx. */
bool ks_ask(struct ks_session *session, const char *method, const char *path,
            const char *content_type, const struct sw_json *body, uint64_t deadline_ms,
            struct ks_answer *ret_answer);
/* GET of a path as JSON. NULL where the status is not 2xx, or the text is no JSON (then the status
 * becomes 0). */
const struct sw_json *ks_get(struct ks_session *session, const char *path,
                             struct ks_answer *ret_answer);
/* The path of an object; NULL where the name cannot be one: then it has been said. */
const char *ks_path(struct ks_session *session, const struct sw_kind *kind, const char *namespace_,
                    const char *name);

#endif
