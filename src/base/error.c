/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of error codes. libuv's come from its own table and not from uv_strerror, which allocates
 * (and leaks) for a code it does not know.
 */
#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

static const char *own_text(int code)
{
    switch (code) {
    case SW_E_TLS:
        return "TLS failed";
    case SW_E_CERTIFICATE:
        return "certificate refused";
    case SW_E_PROTOCOL:
        return "the peer broke HTTP";
    case SW_E_TOO_LARGE:
        return "too large";
    case SW_E_TRUNCATED:
        return "the message is cut off";
    case SW_E_SYNTAX:
        return "malformed text";
    case SW_E_CONFIG:
        return "configuration cannot be used";
    case SW_E_NOT_LEADER:
        return "not the leader";
    case SW_E_STALE:
        return "out of date";
    case SW_E_ABI:
        return "built for another version of the core";
    case SW_E_STATUS:
        return "refused by the API server";
    case SW_E_HELD:
        return "held";
    case SW_E_CREDENTIALS:
        return "no credentials";
    default:
        return NULL;
    }
}

static const char *uv_text(int code)
{
    switch (code) {
#define TEXT(name, text) \
    case UV_##name:      \
        return text;
        UV_ERRNO_MAP(TEXT)
#undef TEXT
    default:
        return NULL;
    }
}

const char *sw_strerror(int code)
{
    if (code == 0) {
        return "success";
    }
    const char *text = own_text(code);
    if (!text) {
        text = uv_text(code);
    }
    if (!text && code < 0 && code > -4096) { /* Linux keeps errno below 4096 */
        text = strerror(-code);
    }
    return text ? text : "unknown error";
}

/* So that a cut does not leave half a character: takes back an unfinished one at the end. */
static size_t whole_characters(const char *text, size_t len)
{
    size_t start = len;
    while (start > 0 && len - start < 4 && ((unsigned char)text[start - 1] & 0xc0) == 0x80) {
        start--;
    }
    if (start == 0) {
        return len;
    }
    unsigned char lead = (unsigned char)text[start - 1];
    size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return len - start + 1 < want ? start - 1 : len;
}

static void put_text(struct sw_error *error, const char *text, int len)
{
    size_t room = sizeof(error->text);
    size_t kept = len < 0 ? 0 : (size_t)len;
    if (kept >= room) {
        kept = whole_characters(text, room - 1);
    }
    memcpy(error->text, text, kept);
    error->text[kept] = '\0';
}

int sw_error_set(struct sw_error *error, int code, const char *format, ...)
{
    if (error) {
        char text[sizeof(error->text)]; /* beside it: an argument may be error->text */
        va_list args;
        va_start(args, format);
        int len = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        put_text(error, text, len);
        error->code = code;
    }
    return code;
}

void sw_error_prefix(struct sw_error *error, const char *format, ...)
{
    if (!error) {
        return;
    }
    char prefix[sizeof(error->text)];
    char text[2 * sizeof(error->text) + 2];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof(prefix), format, args);
    va_end(args);
    int len = snprintf(text, sizeof(text), "%s: %s", prefix, error->text);
    put_text(error, text, len);
}
