/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One struct caller for each token that somebody shows or has shown.
 *
 *   state     what happens                               next
 *   QUEUED    a stranger waits for his turn              IDENTITY; KNOWN (503) when it is too late
 *   IDENTITY  a TokenReview is under way                 RIGHT; KNOWN (401, 500, 503)
 *   RIGHT     a SubjectAccessReview is under way         KNOWN (200, 403, 500, 503)
 *   KNOWN     nobody waits; the verdict holds its time   QUEUED or, who may already, IDENTITY, when
 *                                                        he comes after that; gone, for another one
 *
 * A verdict of 500 or 503 has no time: its caller is gone at once, unless he may still.
 */
#include "runtime/metrics_access.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <slipway/arena.h>
#include <slipway/json.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "kube/caller_review.h"
#include "kube/client.h"
#include "kube/rate_limit.h"
#include "net/tls_digest.h"

enum {
    MAY_MS = 60 * 1000,
    MAY_NOT_MS = 30 * 1000,
    NOBODY_MS = 10 * 1000,
    STILL_MAY_MS = 5 * 60 * 1000,
    /* Who still may is not kept waiting at each scrape for an API server that does not answer. */
    AGAIN_MS = 10 * 1000,
    /* Both reviews and the wait for them; below the 10 s after which Prometheus gives up, so that
     * it can tell why. Who still may need not know why. */
    PATIENCE_MS = 8 * 1000,
    SHORT_PATIENCE_MS = 3 * 1000,
    STRANGERS_PER_S = 10,
    STRANGERS_AT_ONCE = 20,
    TOKEN_MAX_BYTES = 16 * 1024, /* those of ServiceAccounts have 1 KB, of large directories 8 KB */
    WHY_BYTES = 512,             /* the longest name of a ServiceAccount has 339 */
};

enum state {
    QUEUED,
    IDENTITY,
    RIGHT,
    KNOWN,
};

struct caller {
    struct sw_metrics_access *access;
    struct sw_link link; /* in the list of its state */
    enum state state;
    uint8_t digest[SW_DIGEST_BYTES];
    struct sw_link waiters;
    uint64_t due_ms;      /* until when there has to be a verdict */
    struct sw_timer late; /* QUEUED: that it is too late; else: that nothing could be sent */
    int code;             /* why not */
    struct sw_call *call;
    bool is_stranger; /* to what is under way: he could not before */
    int status;       /* of the last verdict that had a time; 0: none */
    uint64_t until_ms, still_until_ms;
    char why[WHY_BYTES];
};

struct sw_metrics_access {
    struct sw_loop *loop;
    struct sw_client *client;
    struct sw_log log;
    uint8_t key[SW_DIGEST_BYTES];
    struct sw_link queued, asked, known; /* of callers; known: who was asked for last stands last */
    size_t known_count, waiting_count, strangers_waiting, strangers_asked;
    struct sw_rate_limit limit;
    struct sw_rate_waiter turn;
    bool is_turn_awaited;
    bool is_in_trouble; /* it was said that reviews are not answered */
};

static void go_on(struct sw_metrics_access *access);
static void settle(struct caller *caller, int status, const char *why);
static void fail(struct caller *caller, const struct sw_reply *reply, const char *question);

/* ---- callers ---- */

static struct caller *of_link(struct sw_link *link)
{
    return container_of(link, struct caller, link);
}

static void forget(struct caller *caller)
{
    sw_timer_stop(&caller->late);
    if (caller->call)
        sw_call_cancel(caller->call);
    if (caller->state == KNOWN)
        caller->access->known_count--;
    sw_link_remove(&caller->link);
    sw_free(caller);
}

static const char too_many[] = "too many callers are to be verified at once";

static void on_late(struct sw_timer *timer)
{
    struct caller *caller = container_of(timer, struct caller, late);
    struct sw_error error = {0};

    if (caller->state == QUEUED) {
        settle(caller, 503, too_many);
        return;
    }
    sw_error_set(&error, caller->code, "%s", sw_strerror(caller->code));
    fail(caller, &(struct sw_reply){.code = caller->code, .why = {.message = ""}, .error = &error},
         "");
}

/* Each list is short: WAITING_MAX and KNOWN_MAX are what is walked at most. */
static struct caller *find(const struct sw_metrics_access *access, const uint8_t *digest)
{
    const struct sw_link *const lists[] = {&access->known, &access->asked, &access->queued};

    for (size_t i = 0; i < SW_ARRAY_SIZE(lists); i++)
        for (struct sw_link *link = lists[i]->next; link != lists[i]; link = link->next)
            if (memcmp(of_link(link)->digest, digest, SW_DIGEST_BYTES) == 0)
                return of_link(link);
    return NULL;
}

static struct caller *caller_new(struct sw_metrics_access *access, const uint8_t *digest)
{
    struct caller *caller = SW_NEW(struct caller);

    caller->access = access;
    memcpy(caller->digest, digest, SW_DIGEST_BYTES);
    sw_link_init(&caller->link);
    sw_link_init(&caller->waiters);
    sw_timer_init(&caller->late, access->loop, on_late);
    return caller;
}

/* Who comes often pushes nobody out who may. */
static void make_room(struct sw_metrics_access *access)
{
    struct sw_link *first = sw_link_first(&access->known);

    if (access->known_count < SW_ACCESS_KNOWN_MAX)
        return;
    SW_LIST_EACH (link, &access->known)
        if (of_link(link)->status != 200) {
            forget(of_link(link));
            return;
        }
    forget(of_link(first));
}

static void keep(struct caller *caller)
{
    struct sw_metrics_access *access = caller->access;

    make_room(access);
    caller->state = KNOWN;
    access->known_count++;
    sw_link_add_last(&access->known, &caller->link);
}

/* ---- a verdict ---- */

/* Nobody can say: who could before still may. True if so. */
static bool keep_right(struct caller *caller)
{
    uint64_t now = sw_now_ms(caller->access->loop);

    if (caller->status != 200 || now >= caller->still_until_ms)
        return false;
    caller->until_ms = SW_MIN(now + AGAIN_MS, caller->still_until_ms);
    return true;
}

static void note(struct caller *caller, int status, const char *why)
{
    uint64_t now = sw_now_ms(caller->access->loop);

    caller->status = status;
    caller->until_ms = now + (status == 200 ? MAY_MS : status == 403 ? MAY_NOT_MS : NOBODY_MS);
    caller->still_until_ms = status == 200 ? now + STILL_MAY_MS : 0;
    snprintf(caller->why, sizeof(caller->why), "%s", why);
}

/* From the list of his waiters into another one. */
static void take_waiters(struct caller *caller, struct sw_link *waiters)
{
    SW_LIST_EACH (link, &caller->waiters) {
        sw_link_add_last(waiters, link);
        caller->access->waiting_count--;
        caller->access->strangers_waiting -= caller->is_stranger;
    }
}

static void tell(struct sw_link *waiters, const struct sw_access_verdict *verdict)
{
    struct sw_link *link;

    while ((link = sw_link_first(waiters))) {
        sw_link_remove(link);
        struct sw_access_waiter *waiter = container_of(link, struct sw_access_waiter, link);
        waiter->fn(waiter, verdict);
    }
}

/* Before anybody is told all is in order: they may come again from within. */
static void settle(struct caller *caller, int status, const char *why)
{
    struct sw_metrics_access *access = caller->access;
    char text[WHY_BYTES];
    struct sw_access_verdict verdict = {status, text};
    struct sw_link waiters;

    snprintf(text, sizeof(text), "%s", why);
    sw_link_init(&waiters);
    take_waiters(caller, &waiters);
    sw_timer_stop(&caller->late);
    if (caller->state != QUEUED && caller->is_stranger)
        access->strangers_asked--;
    if (status < 500)
        note(caller, status, text);
    if (status < 500 || keep_right(caller)) {
        verdict.status = caller->status;
        keep(caller);
    } else {
        forget(caller);
    }
    go_on(access);
    tell(&waiters, &verdict);
}

/* ---- reviews ---- */

static void say_works(struct sw_metrics_access *access)
{
    if (access->is_in_trouble)
        sw_log_info(&access->log, "those who read the metrics can be verified again");
    access->is_in_trouble = false;
}

/* Once, until it works again: each scrape would say the same. */
static void fail(struct caller *caller, const struct sw_reply *reply, const char *question)
{
    struct sw_metrics_access *access = caller->access;
    bool is_ours =
        reply->status >= 300 && reply->status < 500 && reply->status != 429 && reply->status != 401;
    const char *why = reply->code ? reply->error->text : reply->why.message;

    if (!access->is_in_trouble)
        sw_log_warn(&access->log,
                    is_ours ? "those who read the metrics cannot be verified: give the permission "
                              "to our role, or set metrics.secure to false"
                            : "those who read the metrics cannot be verified now",
                    SW_STR("question", question), SW_INT("status", reply->status),
                    SW_STR("why", why));
    access->is_in_trouble = true;
    settle(caller, is_ours ? 500 : 503,
           is_ours ? "slipway may not ask the API server who you are and what you may; its log "
                     "says more"
                   : "the API server does not say now who you are and what you may");
}

static bool is_answer(const struct sw_reply *reply)
{
    return !reply->code && reply->status >= 200 && reply->status < 300;
}

/* Nothing is changed by a review: it may be sent again. What it is about is logged here. */
static void post(struct caller *caller, const char *path, const char *body, size_t len,
                 sw_reply_fn fn)
{
    struct sw_metrics_access *access = caller->access;
    uint64_t now = sw_now_ms(access->loop);
    struct sw_call_options options = {
        .method = "POST",
        .path = path,
        .body = body,
        .body_len = len,
        .lane = "metrics",
        .is_guarded = true,
        .logs_itself = true,
        .deadline_ms = caller->due_ms > now ? caller->due_ms - now : 1,
    };

    caller->code = sw_client_call(access->client, &options, fn, caller, &caller->call);
    if (caller->code)
        sw_timer_start(&caller->late, 0); /* nobody is told before he waits */
}

static void on_right(void *arg, const struct sw_reply *reply)
{
    struct caller *caller = arg;
    struct sw_arena *arena = sw_arena_new(0);
    bool may = false;

    caller->call = NULL;
    if (!is_answer(reply) || sw_access_review_read(arena, reply->body, reply->body_len, &may)) {
        fail(caller, reply, SW_SUBJECT_ACCESS_REVIEWS);
    } else {
        say_works(caller->access);
        if (!may && caller->status != 403)
            sw_log_info(&caller->access->log, "somebody may not read the metrics",
                        SW_STR("why", caller->why));
        settle(caller, may ? 200 : 403, may ? "" : caller->why);
    }
    sw_arena_free(arena);
}

static void ask_right(struct caller *caller, struct sw_arena *arena, const struct sw_json *user)
{
    size_t len;
    const char *body = sw_access_review_text(arena, user, "/metrics", "get", &len);

    caller->state = RIGHT;
    snprintf(caller->why, sizeof(caller->why),
             "%s may not get /metrics: bind it to a ClusterRole that may, such as "
             "slipway-metrics-reader",
             sw_json_get_string(user, "username"));
    post(caller, SW_SUBJECT_ACCESS_REVIEWS, body, len, on_right);
}

static void on_identity(void *arg, const struct sw_reply *reply)
{
    struct caller *caller = arg;
    struct sw_arena *arena = sw_arena_new(0);
    const struct sw_json *user;

    caller->call = NULL;
    if (!is_answer(reply) || sw_token_review_read(arena, reply->body, reply->body_len, &user)) {
        fail(caller, reply, SW_TOKEN_REVIEWS);
    } else if (user) {
        ask_right(caller, arena, user);
    } else {
        say_works(caller->access);
        settle(caller, 401, "the API server does not know this token");
    }
    sw_arena_free(arena);
}

static void ask_identity(struct caller *caller)
{
    struct sw_link *first = sw_link_first(&caller->waiters);
    struct sw_buf body;
    char *room;

    sw_assert(first); /* whose token it is */
    const char *token = container_of(first, struct sw_access_waiter, link)->token;
    caller->state = IDENTITY;
    caller->access->strangers_asked += caller->is_stranger;
    sw_timer_stop(&caller->late);
    sw_link_add_last(&caller->access->asked, &caller->link);
    sw_buf_init(&body, TOKEN_MAX_BYTES + 256);
    /* All at once, so that no copy is left behind where it grows. */
    int code = sw_buf_reserve(&body, strlen(token) + 200, &room);
    if (!code)
        code = sw_token_review_put(&body, token);
    sw_assert(code == 0);
    post(caller, SW_TOKEN_REVIEWS, body.bytes, body.len, on_identity);
    explicit_bzero(body.bytes, body.len);
    sw_buf_done(&body);
}

/* ---- whose turn it is ---- */

static void ask_first(struct sw_metrics_access *access)
{
    struct sw_link *first = sw_link_first(&access->queued);

    if (first)
        ask_identity(of_link(first));
}

static void on_turn(struct sw_rate_waiter *waiter)
{
    struct sw_metrics_access *access = container_of(waiter, struct sw_metrics_access, turn);

    access->is_turn_awaited = false;
    ask_first(access);
    go_on(access);
}

static void go_on(struct sw_metrics_access *access)
{
    bool bites_first;

    while (sw_link_is_used(&access->queued) && access->strangers_asked < SW_ACCESS_ASKED_MAX &&
           !access->is_turn_awaited) {
        if (sw_rate_limit_take(&access->limit, &access->turn, &bites_first))
            ask_first(access);
        else
            access->is_turn_awaited = true;
    }
}

/* ---- from outside ---- */

/* Behind "Bearer" (RFC 9110 section 11.4: in any case); NULL: it is something else. */
static const char *token_in(const char *authorization)
{
    static const char scheme[] = "Bearer ";

    if (!authorization || strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
        return NULL;
    const char *token = authorization + sizeof(scheme) - 1;
    token += strspn(token, " ");
    return strlen(token) <= TOKEN_MAX_BYTES && sw_is_bearer_token(token) ? token : NULL;
}

static void wait_for(struct caller *caller, struct sw_access_waiter *waiter, const char *token)
{
    waiter->token = token;
    sw_link_init(&waiter->link);
    sw_link_add_last(&caller->waiters, &waiter->link);
    caller->access->waiting_count++;
    caller->access->strangers_waiting += caller->is_stranger;
}

/* For one who is not being verified: a new one, or one whose time is over. */
static void verify(struct caller *caller)
{
    struct sw_metrics_access *access = caller->access;

    uint64_t now = sw_now_ms(access->loop);
    bool still_may = now < caller->still_until_ms;

    caller->due_ms = now + (still_may ? SHORT_PATIENCE_MS : PATIENCE_MS);
    if (!caller->is_stranger) {
        ask_identity(caller);
        return;
    }
    caller->state = QUEUED;
    sw_link_add_last(&access->queued, &caller->link);
    sw_timer_start_at(&caller->late, caller->due_ms);
    go_on(access);
}

static bool has_room(const struct sw_metrics_access *access, bool is_stranger)
{
    return access->waiting_count < SW_ACCESS_WAITING_MAX &&
           (!is_stranger || access->strangers_waiting < SW_ACCESS_STRANGERS_MAX);
}

static bool is_fresh(const struct caller *caller)
{
    return caller->state == KNOWN && sw_now_ms(caller->access->loop) < caller->until_ms;
}

bool sw_metrics_access_ask(struct sw_metrics_access *access, const char *authorization,
                           struct sw_access_waiter *waiter, struct sw_access_verdict *ret_verdict)
{
    const char *token = token_in(authorization);
    uint8_t digest[SW_DIGEST_BYTES];

    if (!token) {
        *ret_verdict = (struct sw_access_verdict){401, authorization ? "this is no bearer token"
                                                                     : "a bearer token is needed"};
        return true;
    }
    sw_digest(access->key, token, strlen(token), digest);
    struct caller *caller = find(access, digest);
    bool is_new = !caller || caller->state == KNOWN;
    if (caller && is_fresh(caller)) {
        sw_link_add_last(&access->known, &caller->link);
        *ret_verdict = (struct sw_access_verdict){caller->status, caller->why};
        return true;
    }
    if (!has_room(access, !caller || caller->status != 200)) {
        *ret_verdict = (struct sw_access_verdict){503, too_many};
        return true;
    }
    access->known_count -= caller && is_new;
    if (!caller)
        caller = caller_new(access, digest);
    if (is_new)
        caller->is_stranger = caller->status != 200;
    wait_for(caller, waiter, token);
    if (is_new)
        verify(caller);
    return false;
}

struct sw_metrics_access *sw_metrics_access_new(struct sw_loop *loop, struct sw_client *client,
                                                const struct sw_log *log)
{
    struct sw_metrics_access *access = SW_NEW(struct sw_metrics_access);

    access->loop = loop;
    access->client = client;
    access->log = *log;
    access->log.name = "metrics";
    sw_entropy(access->key, sizeof(access->key));
    sw_link_init(&access->queued);
    sw_link_init(&access->asked);
    sw_link_init(&access->known);
    sw_rate_limit_init(&access->limit, loop, STRANGERS_PER_S, STRANGERS_AT_ONCE);
    sw_rate_waiter_init(&access->turn, on_turn);
    return access;
}

struct sw_metrics_access *sw_metrics_access_free(struct sw_metrics_access *access)
{
    struct sw_access_verdict closing = {503, "closing"};
    struct sw_link waiters, *link;

    if (!access)
        return NULL;
    sw_link_init(&waiters);
    struct sw_link *const lists[] = {&access->queued, &access->asked, &access->known};
    for (size_t i = 0; i < SW_ARRAY_SIZE(lists); i++)
        while ((link = sw_link_first(lists[i]))) {
            take_waiters(of_link(link), &waiters);
            forget(of_link(link));
        }
    sw_rate_limit_forget(&access->limit, &access->turn);
    sw_rate_limit_done(&access->limit);
    tell(&waiters, &closing);
    return sw_free(access);
}
