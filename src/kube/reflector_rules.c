/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules. Where a rule is not obvious, it is client-go's, which every API server is tried with.
 */
#include "kube/reflector_rules.h"

#include "base/error.h"

static enum sw_stream_next judge_code(int code)
{
    switch (code) {
    /* The server answers, but nonsense or more than we take. */
    case SW_E_SYNTAX:
    case SW_E_TOO_LARGE:
        return SW_NEXT_AGAIN;
    default:
        return SW_NEXT_AGAIN_GATED;
    }
}

/* 422: the feature is off, or resourceVersionMatch is not known on a watch (1.19 to 1.26); 400 and
 * its kin from others who check what they do not know. 500 as a status or in the stream: etcd has
 * no progress notifications, without which the server's cache never knows that it is fresh. */
static bool cannot_stream(const struct sw_stream_end *end)
{
    switch (end->status) {
    case 401:
    case 403:
    case 404:
    case 410:
    case 429:
        return false;
    default:
        return end->has_no_mark || (end->status >= 400 && end->status <= 501);
    }
}

enum sw_stream_next sw_stream_judge(const struct sw_stream_end *end)
{
    if (end->code) {
        return judge_code(end->code);
    }
    if (end->is_streamed && !end->is_version_too_large && cannot_stream(end)) {
        return SW_NEXT_LIST_PAGED;
    }
    if (end->is_streamed && end->status == 200) {
        return SW_NEXT_AGAIN; /* before its mark */
    }
    if (end->is_version_too_large) {
        return SW_NEXT_LIST_FRESH; /* that server lags behind what we have seen */
    }
    switch (end->status) {
    case 200:
        return end->was_alive ? SW_NEXT_RESUME : SW_NEXT_AGAIN;
    case 401:
    case 403:
        return SW_NEXT_REFUSED;
    case 404:
        return end->is_list ? SW_NEXT_ABSENT : SW_NEXT_LIST;
    case 410:
        return end->is_list ? SW_NEXT_LIST_FRESH : SW_NEXT_LIST;
    case 429:
    case 503:
        return SW_NEXT_AGAIN_GATED;
    default:
        if (end->status >= 500) {
            return SW_NEXT_AGAIN;
        }
        /* 400 and its kin: the version may be what it does not like. */
        return SW_NEXT_LIST_LATER;
    }
}

const char *sw_stream_next_name(enum sw_stream_next next)
{
    switch (next) {
    case SW_NEXT_RESUME:
        return "resuming";
    case SW_NEXT_AGAIN:
        return "trying again after a while";
    case SW_NEXT_AGAIN_GATED:
        return "trying again when the server answers";
    case SW_NEXT_REFUSED:
        return "trying again now and then";
    case SW_NEXT_LIST:
    case SW_NEXT_LIST_FRESH:
        return "listing anew";
    case SW_NEXT_LIST_PAGED:
        return "listing in pages";
    case SW_NEXT_LIST_LATER:
        return "listing anew after a while";
    case SW_NEXT_ABSENT:
        return "waiting until it is served";
    }
    return "";
}
