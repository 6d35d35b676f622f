/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows from the end of a list or a watch: the rules of the reflector, as a pure function,
 * so that an error means the same whether it came as an HTTP status or inside a stream.
 */
#ifndef SW_KUBE_REFLECTOR_RULES_H
#define SW_KUBE_REFLECTOR_RULES_H

#include <stdbool.h>
#include <stdint.h>

struct sw_stream_end {
    bool is_list;     /* else a watch */
    bool is_streamed; /* a list that was to come as a stream, and has not come to its mark */
    bool has_no_mark; /* it goes on without one */
    int code;         /* of the connection or of what came over it; 0: an answer */
    int status;       /* of HTTP, or of the Status in an ERROR event; 200: ended in order */
    bool is_version_too_large;
    bool was_alive; /* a watch that brought an event or lived for a second */
    uint64_t retry_after_ms;
    /* For the log; NULL or "": not known. */
    const char *message, *audit_id, *flow_schema, *priority_level;
};

enum sw_stream_next {
    SW_NEXT_RESUME,      /* a watch ended as watches do: go on from the last version */
    SW_NEXT_AGAIN,       /* the same again after our own back-off */
    SW_NEXT_AGAIN_GATED, /* the server is down or asks for time: the same again behind the gate */
    SW_NEXT_REFUSED,     /* we may not: the same again, rarely */
    SW_NEXT_LIST,        /* the version has expired: list, at least as new as what is known */
    SW_NEXT_LIST_FRESH,  /* the version is of no use: list without one */
    SW_NEXT_LIST_PAGED,  /* this server has no lists as streams: list in pages */
    SW_NEXT_LIST_LATER,  /* nobody knows what is wrong: list after a back-off */
    SW_NEXT_ABSENT,      /* the kind is not served */
};

enum sw_stream_next sw_stream_judge(const struct sw_stream_end *end);
const char *sw_stream_next_name(enum sw_stream_next next);

#endif
