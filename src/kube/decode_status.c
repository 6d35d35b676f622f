/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metav1.Status, from whatever came with an error: mostly a Status, sometimes the page of a proxy.
 * https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/
 */
#include <string.h>

#include <slipway/arena.h>

#include "base/utf8.h"
#include "base/util.h"
#include "kube/decoder.h"

struct cause_view {
    const char *reason, *message;
};

struct status_view {
    const char *kind, *reason, *message;
    int32_t code, retry_after_seconds;
    struct sw_list causes;
};

static const struct sw_bind cause_fields[] = {
    SW_BIND("/reason", SW_BIND_STRING, struct cause_view, reason),
    SW_BIND("/message", SW_BIND_STRING, struct cause_view, message),
    SW_BIND_END,
};

static const struct sw_bind status_fields[] = {
    SW_BIND("/kind", SW_BIND_STRING, struct status_view, kind),
    SW_BIND("/reason", SW_BIND_STRING, struct status_view, reason),
    SW_BIND("/message", SW_BIND_STRING, struct status_view, message),
    SW_BIND("/code", SW_BIND_INT32, struct status_view, code),
    SW_BIND("/details/retryAfterSeconds", SW_BIND_INT32, struct status_view, retry_after_seconds),
    SW_BIND("/details/causes", SW_BIND_LIST, struct status_view, causes, .element = cause_fields,
            .element_size = sizeof(struct cause_view)),
    SW_BIND_END,
};

/* The first KiB, as text that may be printed: UTF-8, and a space for each control character. */
static const char *printable(struct sw_arena *arena, const char *bytes, size_t len)
{
    enum { MOST = 1024 };
    char *text = sw_arena_alloc(arena, MOST + 4);
    size_t to = 0;
    for (size_t at = 0; at < len && to < MOST;) {
        size_t skip;
        size_t step = sw_utf8_length(bytes + at, len - at, &skip);
        const char *from = step > 0 ? bytes + at : SW_UTF8_REPLACEMENT;
        size_t size = step > 0 ? step : strlen(SW_UTF8_REPLACEMENT);
        if (to + size > MOST) {
            break;
        }
        bool is_control = size == 1 && ((unsigned char)*from < 0x20 || *from == 0x7f);
        memcpy(text + to, is_control ? " " : from, size);
        to += size;
        at += step > 0 ? step : skip;
    }
    return text;
}

/*
 * A server that has not reached the version that was asked for says so by a cause; before 1.17 and
 * in some releases up to 1.18 only in words.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#unavailable-resource-versions
 */
static bool is_version_too_large(const struct status_view *view)
{
    static const char words[] = "Too large resource version";
    const struct cause_view *causes = view->causes.at;
    for (uint32_t i = 0; i < view->causes.count; i++) {
        if (strcmp(causes[i].reason, "ResourceVersionTooLarge") == 0 ||
            strcmp(causes[i].message, words) == 0) {
            return true;
        }
    }
    return strcmp(view->reason, "Timeout") == 0 && strstr(view->message, words);
}

void sw_decode_status(struct sw_arena *arena, const char *bytes, size_t len,
                      struct sw_status_view *ret_status)
{
    struct sw_scan scan;
    struct sw_run run;
    struct sw_table *table = sw_table_new(NULL, status_fields, sizeof(struct status_view));
    sw_run_init(&run, table);
    sw_scan_init(&scan, bytes, len);
    *ret_status = (struct sw_status_view){.reason = "", .message = ""};
    const struct status_view *view = NULL;
    if (sw_run_read(&run, &scan) && sw_scan_end(&scan)) {
        view = sw_run_settle_in(&run, arena);
    }
    if (view && strcmp(view->kind, "Status") == 0) {
        *ret_status = (struct sw_status_view){
            .code = view->code,
            .reason = view->reason,
            .message = view->message,
            .retry_after_seconds = SW_MAX(view->retry_after_seconds, 0),
            .is_version_too_large = is_version_too_large(view),
        };
    } else {
        ret_status->message = printable(arena, bytes, len);
    }
    sw_run_done(&run);
    sw_table_free(table);
}
