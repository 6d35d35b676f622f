/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers outside the cluster, one metrics provider and one that takes webhooks, behind the seam of
 * fetch.h (net/fetcher.h). Of which SteppedRollout a request is, and which question, stands in its
 * path; how it is answered follows from the mood about that target and from the seed. A good answer
 * counts when it has been given to a process that lives.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <slipway/memory.h>

#include "base/error.h"
#include "base/util.h"
#include "net/fetcher.h"
#include "world_steps.h"

enum answer {
    ANSWER_GOOD,
    ANSWER_BAD,   /* out of range; 403 */
    ANSWER_NAN,   /* of a webhook: 503 */
    ANSWER_EMPTY, /* a vector without a value; of a webhook: 500 */
    ANSWER_HTML,
    ANSWER_HUGE, /* 2 MiB */
    ANSWER_HALF, /* and then the connection breaks */
    ANSWER_NONE,
    ANSWER_REFUSED,
};

struct provider {
    struct sw_fetcher base;
    struct replica *replica;
    unsigned open;
};

struct exchange {
    struct provider *provider;
    struct sw_timer timer;
    struct sw_http_exchange_events events;
    void *arg;
    int t; /* -1: of a second one, which has nothing to ask, or of none of ours */
    enum question question;
    enum answer answer;
    bool is_speaking; /* an event is being delivered */
    bool is_cancelled;
};

/* ---- what is asked ---- */

/* "/r0/confirm-rollout", "/r0/m1/api/v1/query?..." */
static void read_path(const struct world *world, const char *path, struct exchange *exchange)
{
    const char *name = path + 1, *question = strchr(name, '/');

    exchange->t = -1;
    if (!question || name[0] != 'r' || question != name + 2)
        return;
    size_t len = strcspn(++question, "/?");
    for (int i = 0; i < QUESTIONS; i++)
        if (strlen(question_names[i]) == len && strncmp(question, question_names[i], len) == 0) {
            exchange->question = (enum question)i;
            exchange->t = name[1] - '0';
        }
    if (exchange->t >= world->stepping->count)
        exchange->t = -1;
}

static bool is_gate(enum question question)
{
    return question == ASK_CONFIRM_ROLLOUT || question == ASK_CONFIRM_STEP ||
           question == ASK_CONFIRM_PROMOTION;
}

static enum answer some(struct world *world, enum answer from, enum answer to)
{
    return (enum answer)world_random(world, from, to);
}

static enum answer answer_of(struct world *world, int t, enum question question)
{
    const struct target *target = &world->stepping->targets[t];

    if (is_gate(question) && !target->is_gate_open)
        return ANSWER_BAD;
    if (world->stepping->is_quiet)
        return question == ASK_ROLLBACK ? ANSWER_BAD : ANSWER_GOOD;
    switch (target->mood) {
    case MOOD_BAD:
        return question == ASK_ROLLBACK ? ANSWER_GOOD : ANSWER_BAD;
    case MOOD_MIXED:
        if (question == ASK_ROLLBACK)
            return world_random(world, 0, 30) ? ANSWER_BAD : ANSWER_GOOD;
        return world_random(world, 0, 4) ? ANSWER_GOOD : some(world, ANSWER_BAD, ANSWER_REFUSED);
    case MOOD_WORDS:
        return some(world, ANSWER_NAN, ANSWER_HALF);
    case MOOD_SILENT:
        return ANSWER_NONE;
    case MOOD_REFUSED:
        return ANSWER_REFUSED;
    default:
        return question == ASK_ROLLBACK ? ANSWER_BAD : ANSWER_GOOD;
    }
}

/* ---- what is answered ---- */

static void end(struct exchange *exchange)
{
    sw_timer_stop(&exchange->timer);
    exchange->provider->open--;
    sw_free(exchange);
}

/* False: the one who asked wants no more. */
static bool say_head(struct exchange *exchange, int status)
{
    const struct sw_http_head head = {
        .status = status, .has_body = true, .keeps_alive = true, .content_length = -1};

    exchange->events.on_head(exchange->arg, &head);
    return !exchange->is_cancelled;
}

static bool say_body(struct exchange *exchange, const char *text)
{
    if (text[0])
        exchange->events.on_body(exchange->arg, text, strlen(text));
    return !exchange->is_cancelled;
}

static bool say_much(struct exchange *exchange)
{
    static char text[64 * 1024];

    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < 32; i++)
        if (!say_body(exchange, text))
            return false;
    return true;
}

static void say_end(struct exchange *exchange, int code)
{
    struct sw_error error = {0};

    if (code)
        sw_error_set(&error, code, "%s", sw_strerror(code));
    exchange->events.on_end(exchange->arg, code, code ? &error : NULL);
}

static const char *vector(const char *value)
{
    static char text[160];

    snprintf(text, sizeof text,
             "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":"
             "{},\"value\":[1767225600,\"%s\"]}]}}",
             value);
    return text;
}

static const char *body_of(const struct exchange *exchange)
{
    switch (exchange->answer) {
    case ANSWER_GOOD:
        return vector("0.5");
    case ANSWER_BAD:
        return vector("7");
    case ANSWER_NAN:
        return vector("NaN");
    case ANSWER_EMPTY:
        return "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}";
    default:
        return "<html><body>It works!</body></html>";
    }
}

static int status_of(const struct exchange *exchange)
{
    bool is_metric = exchange->question <= ASK_METRIC_1;

    if (is_metric || exchange->answer == ANSWER_GOOD || exchange->answer >= ANSWER_HUGE)
        return 200;
    return exchange->answer == ANSWER_BAD ? 403 : exchange->answer == ANSWER_NAN ? 503 : 500;
}

/* To its last byte; else it was cancelled on the way. */
static bool speak(struct exchange *exchange)
{
    if (exchange->answer == ANSWER_REFUSED) {
        say_end(exchange, -ECONNREFUSED);
        return true;
    }
    if (!say_head(exchange, status_of(exchange)))
        return false;
    if (exchange->answer == ANSWER_HUGE)
        return say_much(exchange) && (say_end(exchange, 0), true);
    if (!say_body(exchange, exchange->question <= ASK_METRIC_1 ? body_of(exchange) : "ok"))
        return false;
    say_end(exchange, exchange->answer == ANSWER_HALF ? -ECONNRESET : 0);
    return true;
}

static void on_due(struct sw_timer *timer)
{
    struct exchange *exchange = container_of(timer, struct exchange, timer);
    struct world *world = exchange->provider->replica->world;
    bool is_told =
        world->case_.bug == BUG_STEP_CHECKS_SKIPPED && exchange->provider->replica->lives > 1;

    exchange->is_speaking = true;
    /* Before it hears of it, so that what it then does is seen with it. */
    if (exchange->t >= 0 && !is_told)
        steps_answered(world, exchange->t, exchange->question, exchange->answer == ANSWER_GOOD);
    speak(exchange);
    end(exchange);
}

/* ---- the seam ---- */

static struct provider *of(struct sw_fetcher *base)
{
    return container_of(base, struct provider, base);
}

static int on_send(struct sw_fetcher *base, const struct sw_fetcher_request *request,
                   const struct sw_http_exchange_events *events, void *arg, void **ret_exchange,
                   struct sw_error *error)
{
    struct provider *provider = of(base);
    struct world *world = provider->replica->world;
    struct exchange *exchange = SW_NEW(struct exchange);

    (void)error;
    exchange->provider = provider;
    exchange->events = *events;
    exchange->arg = arg;
    read_path(world, request->http.target, exchange);
    exchange->answer = ANSWER_REFUSED;
    if (exchange->t >= 0)
        exchange->answer = answer_of(world, exchange->t, exchange->question);
    /* The bug: whoever takes over thinks that all was well. */
    if (world->case_.bug == BUG_STEP_CHECKS_SKIPPED && provider->replica->lives > 1)
        exchange->answer = exchange->question == ASK_ROLLBACK ? ANSWER_BAD : ANSWER_GOOD;
    world_say(world, "replica %d asks %s of %s: %d", provider->replica->index,
              question_names[exchange->question], request->origin->host, exchange->answer);
    sw_timer_init(&exchange->timer, provider->replica->loop, on_due);
    if (exchange->answer != ANSWER_NONE) {
        bool is_slow = !world->stepping->is_quiet && world_random(world, 0, 20) == 0;
        sw_timer_start(&exchange->timer, world_random(world, 1, is_slow ? 9000 : 30));
    }
    provider->open++;
    *ret_exchange = exchange;
    return events->on_send ? events->on_send(arg) : 0;
}

static void on_cancel(struct sw_fetcher *base, void *arg)
{
    struct exchange *exchange = arg;

    (void)base;
    exchange->is_cancelled = true;
    if (!exchange->is_speaking)
        end(exchange);
}

static void on_close(struct sw_fetcher *base)
{
    provider_free(base);
}

struct sw_fetcher *provider_new(struct replica *replica)
{
    static const struct sw_fetcher_ops ops = {on_send, on_cancel, on_close};
    struct provider *provider = SW_NEW(struct provider);

    provider->base.ops = &ops;
    provider->replica = replica;
    return &provider->base;
}

struct sw_fetcher *provider_free(struct sw_fetcher *fetcher)
{
    if (!fetcher)
        return NULL;
    struct provider *provider = of(fetcher);
    if (provider->open > 0)
        world_fail(provider->replica->world, "replica %d leaves %u requests open",
                   provider->replica->index, provider->open);
    sw_free(provider);
    return NULL;
}
