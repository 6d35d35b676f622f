/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the reflector share: reflector.c (states, and what follows an end),
 * reflector_list.c, reflector_stream.c and reflector_watch.c (one list in pages, one list as a
 * stream, one watch).
 */
#ifndef SW_KUBE_REFLECTOR_INTERNAL_H
#define SW_KUBE_REFLECTOR_INTERNAL_H

#include "base/log.h"
#include "base/loop.h"
#include "kube/backoff.h"
#include "kube/client.h"
#include "kube/gate.h"
#include "kube/reflector.h"
#include "kube/reflector_rules.h"

struct sw_buf;
struct sw_frame;
struct sw_metric;
struct sw_metric_family;

/* Silence before the mark: longer than a server takes between two objects. */
#define SW_REFLECTOR_MARK_MS UINT64_C(60000)

enum sw_reflector_state {
    SW_REFLECTOR_WAITING,
    SW_REFLECTOR_GATED,
    SW_REFLECTOR_LISTING,
    SW_REFLECTOR_STREAMING,
    SW_REFLECTOR_WATCHING,
};

struct sw_reflector {
    struct sw_loop *loop;
    struct sw_client *client;
    struct sw_decoder *decoder;
    struct sw_store *store;
    struct sw_metrics *metrics;
    struct sw_log log;
    char *kind_name; /* "deployments.apps" */
    char *path;
    char *selectors; /* "&labelSelector=..." */
    char *lane;
    bool is_optional;
    bool streams; /* lists, where the server can */
    unsigned page_size;
    unsigned watch_seconds;
    uint64_t silence_ms;
    sw_reflector_listed_fn fn;
    void *arg;

    enum sw_reflector_state state;
    struct sw_timer timer; /* WAITING */
    struct sw_gate_pass pass;
    struct sw_defer relist;
    struct sw_client_stream_call *stream;
    struct sw_list_reader *list;
    struct sw_frame_reader *frames;
    unsigned depth;
    bool is_freed;

    char *version; /* "": none */
    char *newest;  /* that was ever seen of this cluster; stays where the version is dropped */
    bool wants_list;
    const char *reason; /* of the next list */
    bool is_synced;
    bool is_absent;
    uint64_t last_byte_ms;

    /* STREAMING, and the watch that follows */
    bool is_answered; /* 200 has come */
    unsigned drops;   /* streams that were lost before the mark, in a row */

    /* LISTING, STREAMING */
    bool is_fresh; /* without a version */
    bool has_bytes;
    char *list_floor; /* newest, when this list was sent */
    bool is_doubtful; /* the last one was older than its floor */
    char *list_version;
    char *list_continue;
    size_t items;
    bool is_asked;       /* for a consistent list */
    bool is_asked_again; /* since this one was begun */

    /* WATCHING */
    uint64_t watch_began_ms;
    uint64_t watch_until_ms;
    bool had_event;
    uint64_t bookmark_ms;     /* the last one in this stream; 0: none yet */
    uint64_t bookmark_gap_ms; /* the longest between two of them, on this server */
    struct sw_timer dead_man;
    struct sw_stream_end error; /* from an ERROR event; status 0: none */
    char error_message[256];

    struct sw_backoff backoff;
    struct sw_backoff refusals;
    unsigned watch_failures;
    unsigned expirations; /* in a row, without an event in between */

    struct sw_metric_family *relists;
    struct sw_metric *events;
    struct sw_metric *bad_objects;
    struct sw_metric *objects;
    struct sw_metric *age;
};

/* ---- reflector.c ---- */

void sw_reflector_set_text(char **to, const char *text);
/* What to go on from. */
void sw_reflector_set_version(struct sw_reflector *r, const char *version);
void sw_reflector_note_bad(struct sw_reflector *r, const struct sw_error *error);
/* A list if one is due, else a watch. */
void sw_reflector_begin(struct sw_reflector *r);
/* After a call (depth was raised before it) that may have freed the reflector: true if so. */
bool sw_reflector_leave(struct sw_reflector *r);
/* A list or a watch has ended, by itself or because we gave up on it. The last thing its caller
 * does. */
void sw_reflector_ended(struct sw_reflector *r, const struct sw_stream_end *end);

/* The stream of a list page or of a watch: how it is opened, and its ends but the good one. */
void sw_reflector_open_stream(struct sw_reflector *r,
                              const struct sw_client_stream_options *options,
                              const struct sw_client_stream_events *events);
void sw_reflector_on_open(void *arg, int status);
void sw_reflector_broke_off(struct sw_reflector *r, bool is_list,
                            const struct sw_stream_reply *reply);

/* ---- reflector_list.c, reflector_stream.c, reflector_watch.c ---- */

void sw_reflector_start_list(struct sw_reflector *r);
/* All items are on the store's other side. May free the reflector. */
void sw_reflector_list_is_whole(struct sw_reflector *r);

bool sw_reflector_may_stream(const struct sw_reflector *r);
void sw_reflector_start_stream(struct sw_reflector *r);
/* A frame before the mark. */
void sw_reflector_on_initial(struct sw_reflector *r, const struct sw_frame *frame);
uint64_t sw_reflector_mark_due(const struct sw_reflector *r);
/* A stream has ended before its mark. */
void sw_reflector_fall_back(struct sw_reflector *r, const struct sw_stream_end *end,
                            enum sw_stream_next next);

/* Opens the stream of the path with what is common to all watches behind it; the state is set. */
void sw_reflector_open_watch(struct sw_reflector *r, struct sw_buf *path);
void sw_reflector_start_watch(struct sw_reflector *r);
void sw_reflector_on_dead_man(struct sw_timer *timer);

#endif
