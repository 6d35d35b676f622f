/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader election by a Lease. One request at a time:
 *
 *   step        what happens                     next
 *   IDLE        waits retry_ms; a follower       RENEWING if we lead, else READING
 *               up to 2.2 times that, but not
 *               when it hears of a change, and
 *               not beyond the holder's time
 *   READING     GET                              TAKING if free or expired; RENEWING if it is ours;
 *                                                CREATING on 404; IDLE if somebody holds it
 *   CREATING    POST                             IDLE, leading
 *   TAKING      PUT, a new term                  IDLE, leading; READING on 409
 *   RENEWING    PUT, the same term               IDLE, leading; READING on 409; CREATING on 404
 *   RELEASING   PUT without holder               gone; READING on 409
 *
 * Every failure leads to IDLE. Beside the steps stands whether we lead: from the answer to the
 * first write that succeeded until held_until_ns, which each further one moves on. Whatever the
 * steps do, the clock alone ends it.
 */
#include "kube/lease.h"

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/lease_record.h"
#include "kube/lease_watch.h"

#define NS_PER_MS UINT64_C(1000000)
#define RELEASE_TIMEOUT_MS UINT64_C(5000)
#define SPREAD_MS UINT64_C(200) /* of those who wait for a holder's time to end */
#define NEWS_PACE_MS UINT64_C(100)

enum { RELEASE_TRIES_MAX = 3 }; /* writes, each after a read that still found us in it */

enum step {
    STEP_IDLE,
    STEP_READING,
    STEP_CREATING,
    STEP_TAKING,
    STEP_RENEWING,
    STEP_RELEASING,
};

struct sw_lease {
    struct sw_loop *loop;
    struct sw_client *client;
    struct sw_log log;
    sw_lease_fn fn;
    void *arg;
    char *namespace_, *name, *identity;
    char *collection_path, *path;
    uint64_t duration_ms, renew_deadline_ms, retry_ms;

    enum step step;
    struct sw_call *call;
    uint64_t sent_ns;  /* of the step's request */
    bool had_conflict; /* in this round: a second one waits for the next */
    bool is_failing;   /* said so already */
    struct sw_timer retry;
    struct sw_lease_watch *watch; /* while we follow */
    bool has_news;                /* of which nothing has been read yet */
    uint64_t read_ms;             /* when it was read last */

    struct sw_lease_record record;
    int64_t term;        /* the highest count of transitions ever seen; but see next_term */
    bool is_known;       /* the record has been seen; it stays so when the Lease is deleted */
    bool is_gone;        /* 404 since */
    uint64_t changed_ns; /* when we first saw the record as it is */

    bool is_leading;
    uint64_t held_until_ns;
    struct sw_timer deadline;

    bool is_releasing;
    unsigned release_tries;
    void (*done)(void *arg);
    void *done_arg;
    struct sw_timer release_timer;
    struct sw_defer release_defer;

    struct sw_metric *master_status;
    struct sw_metric *slow_path;
};

static uint64_t now_ns(const struct sw_lease *lease)
{
    return sw_now_ns(lease->loop);
}

static bool is_ours(const struct sw_lease *lease)
{
    return lease->is_known && !lease->is_gone && strcmp(lease->record.holder, lease->identity) == 0;
}

bool sw_lease_is_held(const struct sw_lease *lease)
{
    return lease->is_leading && now_ns(lease) < lease->held_until_ns;
}

int64_t sw_lease_transitions(const struct sw_lease *lease)
{
    return lease->term;
}

/* ---- leading or not ---- */

/* How long the record's holder may be silent. */
static uint64_t patience_ns(const struct sw_lease *lease)
{
    uint64_t ms =
        lease->record.duration_ms ? (uint64_t)lease->record.duration_ms : lease->duration_ms;
    return ms * NS_PER_MS;
}

/* Has the record not changed for so long? */
static bool is_expired(const struct sw_lease *lease)
{
    return now_ns(lease) - lease->changed_ns >= patience_ns(lease);
}

/* Somebody may change it again and again: we are no mill that reads it each time. */
static void look_soon(struct sw_lease *lease)
{
    sw_timer_start_at(&lease->retry, lease->read_ms + NEWS_PACE_MS);
}

static void wait_for_retry(struct sw_lease *lease)
{
    uint64_t wait_ms = lease->retry_ms;

    lease->step = STEP_IDLE;
    lease->had_conflict = false;
    if (!lease->is_leading) {
        /* Followers spread out so that they do not all run for a lease that becomes free. */
        wait_ms += sw_random_between(lease->loop, 0, lease->retry_ms * 12 / 10);
        if (lease->is_known && !is_expired(lease)) {
            uint64_t left_ns = patience_ns(lease) - (now_ns(lease) - lease->changed_ns);
            uint64_t spread_ms = sw_random_between(lease->loop, 1, SPREAD_MS);
            wait_ms = SW_MIN(wait_ms, left_ns / NS_PER_MS + spread_ms);
        }
    }
    sw_timer_start(&lease->retry, wait_ms);
    if (lease->has_news && !lease->is_leading) {
        look_soon(lease);
    }
}

/* The Lease has changed. Who leads hears of its own renewals, and asks for no news. */
static void on_news(void *arg)
{
    struct sw_lease *lease = arg;

    if (lease->is_leading || lease->is_releasing) {
        return;
    }
    lease->has_news = true;
    if (lease->step == STEP_IDLE) {
        look_soon(lease);
    }
}

/* The last thing the caller does: fn may free the lease. */
static void lose(struct sw_lease *lease, const char *reason)
{
    lease->is_leading = false;
    sw_timer_stop(&lease->deadline);
    sw_metric_set(lease->master_status, 0);
    sw_log_warn(&lease->log, "leadership lost, writing stops", SW_STR("reason", reason),
                SW_STR("holder", lease->record.holder));
    if (lease->call) {
        /* Whether it arrives is found out by reading. */
        sw_call_cancel(sw_steal(&lease->call));
    }
    wait_for_retry(lease);
    lease->fn(lease->arg, false);
}

static const char overdue[] = "not renewed in time";

static void on_deadline(struct sw_timer *timer)
{
    struct sw_lease *lease = container_of(timer, struct sw_lease, deadline);
    if (sw_lease_is_held(lease)) {
        uint64_t left_ns = lease->held_until_ns - now_ns(lease);
        sw_timer_start(&lease->deadline, left_ns / NS_PER_MS + 1);
        return;
    }
    lose(lease, overdue);
}

/* A write with our name in it succeeded. The last thing the caller does. */
static void renewed(struct sw_lease *lease)
{
    uint64_t until_ns = lease->sent_ns + lease->renew_deadline_ms * NS_PER_MS;
    if (lease->is_failing) {
        sw_log_info(&lease->log, "lease can be written again");
        lease->is_failing = false;
    }
    /* It took so long that it is worth nothing; or it was sent when the lead was over already: what
     * happened in between has not been seen, so this is another lead and not the same. */
    bool is_late = now_ns(lease) >= until_ns;
    bool has_gap = lease->is_leading && lease->sent_ns >= lease->held_until_ns;
    if (lease->is_leading && !sw_lease_is_held(lease) && (is_late || has_gap)) {
        lose(lease, overdue);
        return;
    }
    if (is_late) {
        wait_for_retry(lease);
        return;
    }
    bool is_new = !lease->is_leading;
    lease->is_leading = true;
    sw_lease_watch_close(lease->watch);
    lease->held_until_ns = until_ns;
    sw_timer_start(&lease->deadline, (until_ns - now_ns(lease)) / NS_PER_MS);
    wait_for_retry(lease);
    if (is_new) {
        sw_metric_set(lease->master_status, 1);
        sw_log_info(&lease->log, "leading", SW_STR("identity", lease->identity),
                    SW_INT("transitions", lease->term));
        lease->fn(lease->arg, true);
    }
}

/* ---- requests ---- */

/* int32 in the API. Somebody may have written the largest there is; what counts is that each is
 * another. */
static int64_t next_term(int64_t term)
{
    return term < INT32_MAX ? term + 1 : 1;
}

static void on_reply(void *arg, const struct sw_reply *reply);

static void send(struct sw_lease *lease, enum step step, const char *method, const char *path,
                 const char *body, size_t body_len)
{
    struct sw_call_options options = {
        .method = method,
        .path = path,
        .body = body,
        .body_len = body_len,
        .lane = "lease",
        .is_guarded = true, /* a version, or a fixed name whose 409 is understood */
        .logs_itself = true,
        .deadline_ms = lease->renew_deadline_ms / 2,
    };
    lease->step = step;
    lease->sent_ns = now_ns(lease);
    int rc = sw_client_call(lease->client, &options, on_reply, lease, &lease->call);
    if (rc) {
        sw_log_warn(&lease->log, "lease cannot be asked for, trying again", SW_ERR(rc));
        wait_for_retry(lease);
    }
}

static void read_record(struct sw_lease *lease)
{
    lease->has_news = false;
    lease->read_ms = sw_now_ms(lease->loop);
    send(lease, STEP_READING, "GET", lease->path, NULL, 0);
}

static void write_record(struct sw_lease *lease, enum step step)
{
    struct sw_lease_change change = {
        .namespace_ = lease->namespace_,
        .name = lease->name,
        .identity = lease->identity,
        .duration_s = (int64_t)(lease->duration_ms / 1000),
        .transitions = lease->term, /* also where somebody emptied the record: terms only grow */
        .wall_us = sw_wall_us(lease->loop),
    };
    switch (step) {
    case STEP_CREATING:
        change.what = SW_LEASE_CREATE;
        /* Ours deleted: the same term goes on. Another's: its term has ended. */
        if (lease->is_known && !lease->is_leading) {
            change.transitions = next_term(lease->term);
        }
        break;
    case STEP_TAKING:
        change.what = SW_LEASE_TAKE;
        change.transitions = next_term(lease->term);
        break;
    case STEP_RELEASING:
        change.what = SW_LEASE_RELEASE;
        change.duration_s = 1;
        break;
    case STEP_RENEWING:
    default:
        change.what = SW_LEASE_RENEW;
        break;
    }
    bool is_new = step == STEP_CREATING;
    size_t len;
    SW_AUTO(char, sw_free) body = sw_lease_record_write(&lease->record, &change, &len);
    send(lease, step, is_new ? "POST" : "PUT", is_new ? lease->collection_path : lease->path, body,
         len);
}

static void on_retry(struct sw_timer *timer)
{
    struct sw_lease *lease = container_of(timer, struct sw_lease, retry);
    if (lease->is_leading && !sw_lease_is_held(lease)) {
        /* Timers stand still while the machine is suspended: the one of the deadline comes later.
         */
        lose(lease, overdue);
    } else if (lease->is_leading && is_ours(lease)) {
        write_record(lease, STEP_RENEWING);
    } else {
        read_record(lease);
    }
}

/* ---- release ---- */

/* The last thing the caller does. */
static void finish_release(struct sw_lease *lease)
{
    if (lease->call) {
        sw_call_cancel(sw_steal(&lease->call));
    }
    lease->step = STEP_IDLE;
    sw_timer_stop(&lease->retry); /* a request that could not even be sent has started it */
    sw_timer_stop(&lease->release_timer);
    sw_defer_stop(&lease->release_defer);
    if (lease->done) {
        void (*done)(void *arg) = lease->done;
        lease->done = NULL;
        done(lease->done_arg);
    }
}

static void on_release_timer(struct sw_timer *timer)
{
    struct sw_lease *lease = container_of(timer, struct sw_lease, release_timer);
    sw_log_warn(&lease->log, "lease not released: the API server does not answer; it runs out");
    finish_release(lease);
}

static void on_release_defer(struct sw_defer *defer)
{
    finish_release(container_of(defer, struct sw_lease, release_defer));
}

/* A step has ended while releasing. is_certain: the record is what the API server has now. The last
 * thing the caller does. */
static void release_goes_on(struct sw_lease *lease, enum step step, bool is_certain)
{
    bool is_done = step == STEP_RELEASING && is_certain;
    lease->step = STEP_IDLE;
    if (!is_done && is_certain && is_ours(lease) && lease->release_tries++ < RELEASE_TRIES_MAX) {
        write_record(lease, STEP_RELEASING);
    } else if (!is_certain && step != STEP_READING) {
        read_record(lease);
    }
    if (lease->step == STEP_IDLE) {
        finish_release(lease);
    }
}

void sw_lease_release(struct sw_lease *lease, void (*done)(void *arg), void *arg)
{
    sw_assert(!lease->is_releasing);
    lease->is_releasing = true;
    lease->is_leading = false;
    lease->done = done;
    lease->done_arg = arg;
    sw_metric_set(lease->master_status, 0);
    sw_lease_watch_close(lease->watch);
    sw_timer_stop(&lease->retry);
    sw_timer_stop(&lease->deadline);
    sw_timer_start(&lease->release_timer, RELEASE_TIMEOUT_MS);
    if (lease->step != STEP_IDLE) {
        return; /* on_reply goes on: whatever is under way may make it ours */
    }
    if (is_ours(lease)) {
        write_record(lease, STEP_RELEASING);
    }
    if (lease->step == STEP_IDLE) {
        sw_defer_start(&lease->release_defer);
    }
}

/* ---- answers ---- */

static void complain(struct sw_lease *lease, const struct sw_reply *reply)
{
    const char *message = reply->code ? reply->error->text : reply->why.message;
    if (lease->is_failing) {
        sw_log_debug(&lease->log, "lease request failed again", SW_INT("status", reply->status),
                     SW_STR("message", message));
        return;
    }
    lease->is_failing = true;
    sw_log_warn(&lease->log, "lease request failed, trying on", SW_INT("status", reply->status),
                SW_STR("message", message), SW_STR("auditID", reply->audit_id));
}

/* Takes over the record of an answer. */
static bool observe(struct sw_lease *lease, const struct sw_reply *reply)
{
    SW_AUTO(char, sw_free) spec = sw_steal(&lease->record.spec);
    SW_AUTO(char, sw_free) holder = sw_steal(&lease->record.holder);
    struct sw_error error;
    int rc = sw_lease_record_read(&lease->record, reply->body, reply->body_len, &error);
    if (rc) {
        lease->record.spec = sw_steal(&spec);
        lease->record.holder = sw_steal(&holder);
        sw_log_warn(&lease->log, "lease is unreadable, trying on", SW_STR("why", error.text));
        return false;
    }
    bool is_same = lease->is_known && !lease->is_gone && strcmp(spec, lease->record.spec) == 0;
    if (!is_same) {
        lease->changed_ns = now_ns(lease);
    }
    if (!holder || strcmp(holder, lease->record.holder) != 0) {
        sw_log_info(&lease->log, "lease has a holder", SW_STR("holder", lease->record.holder));
    }
    if (lease->record.transitions > lease->term || lease->term >= INT32_MAX) {
        lease->term = lease->record.transitions;
    }
    lease->is_known = true;
    lease->is_gone = false;
    return true;
}

static void decide(struct sw_lease *lease)
{
    bool is_free = !lease->record.holder[0];
    if (is_ours(lease)) {
        write_record(lease, STEP_RENEWING);
    } else if (lease->is_leading && !is_free) {
        lose(lease, "somebody else has taken the lease");
    } else if (is_free || is_expired(lease)) {
        write_record(lease, STEP_TAKING); /* a leader whose Lease was emptied leads on */
    } else {
        sw_lease_watch_open(lease->watch, lease->record.version);
        wait_for_retry(lease);
    }
}

/* 404. A holder that we know of may lead on until its deadline, Lease or not. */
static void decide_absent(struct sw_lease *lease)
{
    bool may_lead = lease->is_known && lease->record.holder[0] && !lease->is_leading &&
                    strcmp(lease->record.holder, lease->identity) != 0;
    lease->is_gone = true;
    if (may_lead && !is_expired(lease)) {
        wait_for_retry(lease);
    } else {
        write_record(lease, STEP_CREATING);
    }
}

static void answered(struct sw_lease *lease, enum step step, const struct sw_reply *reply)
{
    bool is_good = !reply->code && reply->status >= 200 && reply->status < 300;
    if (is_good && observe(lease, reply)) {
        if (step == STEP_READING) {
            decide(lease);
        } else if (is_ours(lease)) {
            renewed(lease);
        } else {
            wait_for_retry(lease); /* an answer that does not hold what was written */
        }
    } else if (reply->status == 404 && step != STEP_CREATING) {
        decide_absent(lease);
    } else if (reply->status == 409 && !lease->had_conflict) {
        lease->had_conflict = true;
        sw_metric_add(lease->slow_path, 1);
        read_record(lease);
    } else {
        if (!is_good && reply->status != 409) {
            complain(lease, reply);
        }
        wait_for_retry(lease);
    }
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct sw_lease *lease = arg;
    enum step step = lease->step;
    lease->call = NULL;
    if (!lease->is_releasing) {
        answered(lease, step, reply);
        return;
    }
    bool is_good = !reply->code && reply->status >= 200 && reply->status < 300;
    bool is_certain = is_good && observe(lease, reply);
    if (reply->status == 404) {
        lease->is_gone = is_certain = true;
    }
    release_goes_on(lease, step, is_certain);
}

/* ---- life ---- */

static void open_metrics(struct sw_lease *lease, struct sw_metrics *metrics)
{
    static const char *const by_name[] = {"name", NULL};
    const char *const values[] = {lease->name};
    lease->master_status =
        sw_metric_child(sw_metrics_family(metrics, SW_METRIC_GAUGE, "leader_election_master_status",
                                          "1 while this process leads.", by_name, NULL, 0),
                        values);
    lease->slow_path = sw_metric_child(
        sw_metrics_family(metrics, SW_METRIC_COUNTER, "leader_election_slowpath_total",
                          "Writes of the lease that met a conflict.", by_name, NULL, 0),
        values);
    sw_metric_set(lease->master_status, 0);
}

static void make_paths(struct sw_lease *lease)
{
    static const struct sw_kind kind = {
        .group = "coordination.k8s.io", .version = "v1", .kind = "Lease", .plural = "leases"};
    sw_assert(sw_client_path(&kind, lease->namespace_, NULL, NULL, &lease->collection_path) == 0);
    sw_assert(sw_client_path(&kind, lease->namespace_, lease->name, NULL, &lease->path) == 0);
}

struct sw_lease *sw_lease_new(struct sw_loop *loop, struct sw_client *client,
                              const struct sw_lease_options *options, struct sw_metrics *metrics,
                              const struct sw_log *log, sw_lease_fn fn, void *arg)
{
    struct sw_lease *lease = SW_NEW(struct sw_lease);
    lease->loop = loop;
    lease->client = client;
    lease->log = *log;
    lease->log.name = "lease";
    lease->fn = fn;
    lease->arg = arg;
    lease->namespace_ = sw_strdup(options->namespace_);
    lease->name = sw_strdup(options->name);
    lease->identity = sw_strdup(options->identity);
    lease->duration_ms = options->duration_ms ? options->duration_ms : 15000;
    lease->renew_deadline_ms = options->renew_deadline_ms ? options->renew_deadline_ms : 10000;
    lease->retry_ms = options->retry_ms ? options->retry_ms : 2000;
    /* Else a follower could win before the holder has given up, or the holder could not fit in a
     * second try. The API counts in whole seconds. */
    sw_assert(lease->duration_ms > lease->renew_deadline_ms && lease->duration_ms % 1000 == 0);
    sw_assert(lease->renew_deadline_ms * 10 > lease->retry_ms * 12);
    make_paths(lease);
    lease->watch = sw_lease_watch_new(loop, client, lease->collection_path, lease->name,
                                      &lease->log, on_news, lease);
    open_metrics(lease, metrics);
    sw_timer_init(&lease->retry, loop, on_retry);
    sw_timer_init(&lease->deadline, loop, on_deadline);
    sw_timer_init(&lease->release_timer, loop, on_release_timer);
    sw_defer_init(&lease->release_defer, loop, on_release_defer);
    sw_timer_start(&lease->retry, 0);
    return lease;
}

struct sw_lease *sw_lease_free(struct sw_lease *lease)
{
    if (!lease) {
        return NULL;
    }
    if (lease->call) {
        sw_call_cancel(lease->call);
    }
    sw_lease_watch_free(lease->watch);
    sw_timer_stop(&lease->retry);
    sw_timer_stop(&lease->deadline);
    sw_timer_stop(&lease->release_timer);
    sw_defer_stop(&lease->release_defer);
    sw_lease_record_clear(&lease->record);
    sw_free(lease->namespace_);
    sw_free(lease->name);
    sw_free(lease->identity);
    sw_free(lease->collection_path);
    sw_free(lease->path);
    sw_free(lease);
    return NULL;
}
