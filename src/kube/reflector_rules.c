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

enum sw_stream_next sw_stream_judge(const struct sw_stream_end *end)
{
    if (end->code) {
        return judge_code(end->code);
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
    case SW_NEXT_LIST_LATER:
        return "listing anew after a while";
    case SW_NEXT_ABSENT:
        return "waiting until it is served";
    }
    return "";
}
