/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes records as Events (core/v1, the count model: what `kubectl get events` sorts and `kubectl
 * describe` shows). The queue is bounded and one request is under way at a time, so that Events
 * never delay or fail a rollout. An Event may be lost in a crash; it is never written twice,
 * because its name is fixed before the first try.
 */
#include <string.h>

#include <slipway/queue.h>
#include <slipway/record.h>
#include <slipway/telemetry.h>
#include <slipway/time.h>
#include <slipway/write.h>

#include "book.h"

#define QUEUE_MAX 1000
#define TRIES_MAX 12 /* as client-go; only where no answer came */
#define RETRY_MS 10000

struct event {
    struct sw_object meta;
};

static const struct sw_bind event_fields[] = {SW_BIND_END};

static const struct sw_kind event_kind = {
    .group = "",
    .version = "v1",
    .kind = "Event",
    .plural = "events",
    .size = sizeof(struct event),
    .fields = event_fields,
};

struct state {
    struct book *book;
    /* A ring; events in it have is_queued, each once. The first one is being written while is_busy.
     */
    struct book_event *queue[QUEUE_MAX];
    size_t first, waiting;
    int64_t sent_count;  /* of the first one, as it is being written */
    int64_t first_count; /* the same at the first try, which may have come through unanswered */
    unsigned tries;      /* of the first one that were not answered */
    bool is_busy;
    bool is_waiting; /* for the next try: what is added meanwhile does not bring it forward */
    struct sw_alarm *next;
    struct sw_metric *written, *dropped_rate, *dropped_queue, *dropped_error;
};

/* ---- what is sent ---- */

static void set_time(struct sw_json *event, const char *key, struct sw_arena *arena,
                     int64_t wall_us)
{
    sw_json_set_string(event, key, sw_time_text(arena, wall_us));
}

static struct sw_json *whole_event(struct sw_arena *arena, const struct book_event *event)
{
    const struct sw_kind *kind = event->kind;
    struct sw_json *body = sw_json_object(arena);
    struct sw_json *metadata = sw_json_set_object(body, "metadata");
    struct sw_json *object = sw_json_set_object(body, "involvedObject");

    sw_json_set_string(body, "apiVersion", "v1");
    sw_json_set_string(body, "kind", "Event");
    sw_json_set_string(metadata, "name", event->name);
    sw_json_set_string(metadata, "namespace", event->namespace_);
    sw_json_set_string(object, "apiVersion",
                       kind->group[0] ? sw_arena_printf(arena, "%s/%s", kind->group, kind->version)
                                      : kind->version);
    sw_json_set_string(object, "kind", kind->kind);
    if (!kind->is_cluster_scoped)
        sw_json_set_string(object, "namespace", event->namespace_);
    sw_json_set_string(object, "name", event->object_name);
    sw_json_set_string(object, "uid", event->uid);
    sw_json_set_string(object, "resourceVersion", event->resource_version);
    sw_json_set_string(body, "type", event->type == SW_WARNING ? "Warning" : "Normal");
    sw_json_set_string(body, "reason", event->reason);
    sw_json_set_string(body, "message", event->message);
    sw_json_set_string(sw_json_set_object(body, "source"), "component", event->component);
    sw_json_set_string(body, "reportingComponent", event->component);
    sw_json_set_string(body, "reportingInstance", "");
    set_time(body, "firstTimestamp", arena, event->first_us);
    set_time(body, "lastTimestamp", arena, event->last_us);
    sw_json_set_int(body, "count", event->count);
    return body;
}

static struct sw_json *repeat_of_event(struct sw_arena *arena, const struct book_event *event)
{
    struct sw_json *body = sw_json_object(arena);

    set_time(body, "lastTimestamp", arena, event->last_us);
    sw_json_set_int(body, "count", event->count);
    return body;
}

/* ---- the queue ---- */

static struct book_event *first_of(struct state *state)
{
    return state->queue[state->first];
}

static void push(struct state *state, struct book_event *event)
{
    event->is_queued = true;
    state->queue[(state->first + state->waiting++) % QUEUE_MAX] = event;
}

static struct book_event *pop(struct state *state)
{
    struct book_event *event = first_of(state);

    event->is_queued = false;
    state->first = (state->first + 1) % QUEUE_MAX;
    state->waiting--;
    state->tries = 0;
    return event;
}

/* Not at once: what is told of comes with requests that are of more use, and they go first. */
static void write_soon(struct state *state)
{
    if (!state->is_busy && !state->is_waiting && state->waiting > 0)
        sw_alarm_set(state->next, 0);
}

/* count: what the API server has of the first one. */
static void written(struct state *state, int64_t count)
{
    struct book_event *event = pop(state);

    event->is_stored = true;
    sw_count(state->written, 1);
    /* It happened again meanwhile. */
    if (event->count != count)
        push(state, event);
}

static void dropped(struct state *state)
{
    sw_count(state->dropped_error, 1);
    pop(state);
}

/* Or never, after so many tries; then the next one has its turn. */
static void try_later(struct sw_instance *self, struct state *state)
{
    if (++state->tries < TRIES_MAX) {
        state->is_waiting = true;
        sw_alarm_set(state->next, RETRY_MS / 2 + sw_time_random(self) % RETRY_MS);
        return;
    }
    dropped(state);
    write_soon(state);
}

static void answered(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct state *state = sw_state(self);
    struct book_event *event = first_of(state);

    (void)arg;
    state->is_busy = false;
    switch (answer->outcome) {
    case SW_CONFLICT:
        if (event->is_stored) { /* the API server gave up: others write it at the same time */
            try_later(self, state);
            return;
        }
        /* A create whose answer was lost: it is there under our name, with the count of any of the
         * tries. */
        written(state, state->first_count);
        break;
    case SW_OK:
    case SW_UNCHANGED:
        written(state, state->sent_count);
        break;
    case SW_NOT_FOUND:
        if (event->is_stored) {
            /* Expired: the same again under a new name. */
            book_renew(state->book, event, sw_time_wall_us(self));
            break;
        }
        dropped(state);
        break;
    case SW_UNKNOWN:
        try_later(self, state);
        return;
    case SW_REFUSED:
    case SW_NOT_LEADER:
    case SW_HELD:
        /* Also while the namespace is being terminated: nobody will look at it there. */
        sw_debug(self, "event refused", SW_STR("reason", answer->reason),
                 SW_STR("message", answer->message));
        dropped(state);
        break;
    }
    write_soon(state);
}

/* True if a request is under way now. */
static bool write_first(struct sw_instance *self, struct state *state)
{
    const struct book_event *event = first_of(state);
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_write write = {
        .verb = event->is_stored ? SW_MERGE_PATCH : SW_CREATE,
        .kind = &event_kind,
        .namespace_ = event->namespace_,
        .name = event->name,
        .body = event->is_stored ? repeat_of_event(arena, event) : whole_event(arena, event),
        .also_on_followers = true,
    };

    state->sent_count = event->count;
    if (state->tries == 0)
        state->first_count = event->count;
    int code = sw_write(self, &write, answered, NULL);
    sw_arena_free(arena);
    return code == 0;
}

static void write_next(struct sw_instance *self, void *arg)
{
    struct state *state = sw_state(self);

    (void)arg;
    state->is_waiting = false;
    while (!state->is_busy && state->waiting > 0) {
        state->is_busy = write_first(self, state);
        if (!state->is_busy)
            dropped(state);
    }
}

static void sink(struct sw_instance *self, const struct sw_record *record)
{
    struct state *state = sw_state(self);
    struct book_event *event =
        book_enter(state->book, record, sw_time_ms(self), sw_time_wall_us(self));

    if (!event) {
        sw_count(state->dropped_rate, 1);
        return;
    }
    if (event->is_queued)
        return; /* it will be written with the new count */
    if (state->waiting == QUEUE_MAX) {
        sw_count(state->dropped_queue, 1);
        return;
    }
    push(state, event);
    write_soon(state);
}

/* ---- the module ---- */

static struct sw_metric *dropped_counter(struct sw_instance *self, const char *why)
{
    return sw_counter(self, "slipway_events_dropped_total", "Events that were not written.", "why",
                      why);
}

static int start(struct sw_instance *self, const void *config)
{
    struct state *state = sw_state(self);

    (void)config;
    state->book = book_new();
    state->next = sw_alarm_new(self, write_next, NULL);
    state->written = sw_counter(self, "slipway_events_written_total",
                                "Events created, or raised in count.", NULL, NULL);
    state->dropped_rate = dropped_counter(self, "rate");
    state->dropped_queue = dropped_counter(self, "queue");
    state->dropped_error = dropped_counter(self, "error");
    sw_write_declare(self, &event_kind, SW_CREATE, SW_MAIN);
    sw_write_declare(self, &event_kind, SW_MERGE_PATCH, SW_MAIN);
    return sw_sink_register(self, sink);
}

static void stop(struct sw_instance *self)
{
    struct state *state = sw_state(self);

    state->book = book_free(state->book);
}

SW_API const struct sw_module sw_module_events = {
    SW_MODULE_HEAD("events"),
    .summary = "records what happens as Kubernetes Events",
    .state_size = sizeof(struct state),
    .start = start,
    .stop = stop,
};
