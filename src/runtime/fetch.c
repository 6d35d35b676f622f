/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fetch: one exchange after the other as long as redirects lead on, within one deadline. What is
 * logged of a URL is where it goes; its query, and who asks, may be secrets.
 */
#include "runtime/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/util.h"
#include "net/fetcher.h"
#include "net/url_request.h"
#include "runtime/core.h"
#include "runtime/instance.h"

enum {
    TIMEOUT_MS = 10 * 1000,
    BODY_LIMIT_BYTES = 1024 * 1024,
    REDIRECTS_MAX = 5,
    LOCATION_LIMIT = SW_URL_LIMIT,
};

struct sw_fetching {
    struct sw_link link;
    struct sw_core *core;
    struct sw_instance *instance;
    sw_fetch_fn fn;
    void *arg;

    /* what is asked: kept whole of a GET, which may have to be sent once more */
    const char *method; /* a constant */
    struct sw_url_request url;
    struct sw_http_field *fields; /* copies, in the order of the names */
    size_t field_count;
    char *ca_pem;
    bool insecure_skip_verify;
    uint32_t timeout_ms;
    uint64_t due_ms;
    uint64_t began_ns;
    unsigned redirects;

    /* the exchange under way */
    void *exchange; /* NULL: none */
    bool was_sent;
    int status; /* of its head; 0: none yet */
    char *location;
    struct sw_buf body;

    struct sw_timer timer;
    struct sw_defer fail;
    char why[512];
};

/* ---- memory ---- */

static void drop_location(struct sw_fetching *f)
{
    f->location = sw_free(f->location);
}

/* The copies are ours, whatever the type of a field says. */
static void free_field(struct sw_http_field *field)
{
    sw_free((char *)(uintptr_t)field->name);
    sw_free_secret_text((char *)(uintptr_t)field->value);
}

static void add_field(struct sw_fetching *f, const char *name, const char *value)
{
    f->fields = sw_realloc(f->fields, f->field_count + 1, sizeof(*f->fields));
    f->fields[f->field_count++] = (struct sw_http_field){sw_strdup(name), sw_strdup(value)};
}

/* What was meant for the first origin stays there (RFC 9110 section 15.4); what we understand may
 * be told to anybody. */
static void drop_fields(struct sw_fetching *f)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->field_count; i++) {
        if (strcasecmp(f->fields[i].name, "Accept") == 0)
            f->fields[kept++] = f->fields[i];
        else
            free_field(&f->fields[i]);
    }
    f->field_count = kept;
}

/* Takes it out of everything: nothing comes any more. */
static void detach(struct sw_fetching *f)
{
    struct sw_fetcher *fetcher = f->core->fetches.fetcher;

    if (f->exchange)
        fetcher->ops->cancel(fetcher, f->exchange);
    f->exchange = NULL;
    sw_timer_stop(&f->timer);
    sw_defer_stop(&f->fail);
    sw_link_remove(&f->link);
}

static void destroy(struct sw_fetching *f)
{
    for (size_t i = 0; i < f->field_count; i++)
        free_field(&f->fields[i]);
    sw_free(f->fields);
    sw_url_request_done(&f->url);
    sw_free(f->ca_pem);
    drop_location(f);
    sw_buf_done(&f->body);
    sw_free(f);
}

void sw_fetch_cancel(struct sw_fetching *fetching)
{
    if (!fetching)
        return;
    detach(fetching);
    destroy(fetching);
}

/* ---- the end ---- */

static const char *const classes[SW_FETCH_CLASSES] = {"<error>", "2xx", "3xx", "4xx", "5xx"};

/* A status above 599 counts as a server's mistake, RFC 9110 section 15. */
static void count(const struct sw_fetching *f, int status)
{
    const struct sw_fetches *fetches = &f->core->fetches;
    int class = status < 200 ? 0 : SW_MIN(status / 100 - 1, SW_FETCH_CLASSES - 1);

    sw_metric_add(fetches->requests[class], 1);
    sw_metric_observe(fetches->seconds, (double)(sw_now_ns(f->core->loop) - f->began_ns) / 1e9);
}

static void say(const struct sw_fetching *f, const struct sw_fetch_answer *answer)
{
    const struct sw_log *log = &f->instance->log;
    struct sw_buf url;

    if (!sw_log_is_on(log, SW_LEVEL_DEBUG))
        return;
    sw_buf_init(&url, SIZE_MAX);
    sw_url_request_text(&f->url, &url);
    sw_log_debug(log, answer->status ? "fetched" : "not fetched", SW_STR("method", f->method),
                 SW_STR("url", url.bytes), SW_INT("status", answer->status),
                 SW_INT("bytes", answer->body_len),
                 SW_INT("ms", (sw_now_ns(f->core->loop) - f->began_ns) / 1000000),
                 SW_STR("why", answer->why));
    sw_buf_done(&url);
}

static void finish(struct sw_fetching *f, const struct sw_fetch_answer *answer)
{
    detach(f);
    count(f, answer->status);
    say(f, answer);
    f->fn(f->instance, f->arg, answer);
    destroy(f);
}

static void finish_failed(struct sw_fetching *f)
{
    const struct sw_fetch_answer answer = {.why = f->why, .body = ""};

    finish(f, &answer);
}

static void on_fail(struct sw_defer *defer)
{
    finish_failed(container_of(defer, struct sw_fetching, fail));
}

/* The exchange is given up; the callback comes in a later call. */
static void fail_later(struct sw_fetching *f)
{
    struct sw_fetcher *fetcher = f->core->fetches.fetcher;

    if (f->exchange)
        fetcher->ops->cancel(fetcher, f->exchange);
    f->exchange = NULL;
    sw_timer_stop(&f->timer);
    sw_defer_start(&f->fail);
}

static void set_timed_out(struct sw_fetching *f)
{
    const char *what = f->status     ? "answer not complete"
                       : f->was_sent ? "no answer"
                                     : "no connection";
    unsigned ms = f->timeout_ms;

    if (ms % 1000 == 0)
        snprintf(f->why, sizeof(f->why), "%s within %u s", what, ms / 1000);
    else
        snprintf(f->why, sizeof(f->why), "%s within %u ms", what, ms);
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_fetching *f = container_of(timer, struct sw_fetching, timer);

    set_timed_out(f);
    finish_failed(f);
}

/* ---- one exchange ---- */

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void refuse_large(struct sw_fetching *f)
{
    snprintf(f->why, sizeof(f->why), "answer longer than %zu bytes", f->body.limit_bytes);
    fail_later(f);
}

static void on_head(void *arg, const struct sw_http_head *head)
{
    struct sw_fetching *f = arg;
    const char *location = sw_http_field_get(&head->fields, "Location");

    f->status = head->status;
    if (strcmp(f->method, "GET") == 0 && is_redirect(head->status) && location)
        f->location = sw_strdup(location);
    if (head->has_body && head->content_length > (int64_t)f->body.limit_bytes)
        refuse_large(f);
}

static void on_body(void *arg, const char *bytes, size_t len)
{
    struct sw_fetching *f = arg;

    if (sw_buf_append(&f->body, bytes, len))
        refuse_large(f);
}

static int on_send(void *arg)
{
    struct sw_fetching *f = arg;

    f->was_sent = true;
    return 0;
}

static void on_end(void *arg, int code, const struct sw_error *error);

/* Body: of the first exchange. */
static int send(struct sw_fetching *f, const void *body, size_t body_len, struct sw_error *error)
{
    static const struct sw_http_exchange_events events = {on_head, on_body, on_end, on_send};
    struct sw_fetcher *fetcher = f->core->fetches.fetcher;
    uint64_t now = sw_now_ms(f->core->loop);
    uint64_t left_ms = f->due_ms > now ? f->due_ms - now : 1;
    const struct sw_fetcher_request request = {
        .origin = &f->url.origin,
        .insecure_skip_verify = f->insecure_skip_verify,
        .ca_pem = f->ca_pem,
        .http = {.method = f->method,
                 .target = f->url.target,
                 .fields = f->fields,
                 .field_count = f->field_count,
                 .body = body,
                 .body_len = body_len,
                 .head_timeout_ms = left_ms,
                 .total_timeout_ms = left_ms},
    };

    f->was_sent = false;
    f->status = 0;
    drop_location(f);
    sw_buf_clear(&f->body);
    int rc = fetcher->ops->send(fetcher, &request, &events, f, &f->exchange, error);
    /* After that of the exchange, which is due at the same time and knows which address of a server
     * to avoid the next time. */
    if (!rc)
        sw_timer_start_at(&f->timer, f->due_ms);
    return rc;
}

/* To where the answer points. */
static int follow(struct sw_fetching *f, struct sw_error *error)
{
    struct sw_url_request next;
    int rc;

    if (++f->redirects > REDIRECTS_MAX)
        return sw_error_set(error, SW_E_PROTOCOL, "redirected more than %d times", REDIRECTS_MAX);
    rc = sw_url_request_follow(&f->url, f->location, &next, error);
    if (rc) {
        sw_error_prefix(error, "redirected to what is no URL of ours");
        return rc;
    }
    if (f->url.origin.is_https && !next.origin.is_https) {
        sw_url_request_done(&next);
        return sw_error_set(error, SW_E_PROTOCOL, "redirected from https to http: not followed");
    }
    if (!sw_url_is_same_origin(&f->url.origin, &next.origin))
        drop_fields(f);
    sw_url_request_done(&f->url);
    f->url = next;
    return send(f, NULL, 0, error);
}

static void explain(struct sw_fetching *f, int code, const struct sw_error *error)
{
    if (code == -ETIMEDOUT && sw_now_ms(f->core->loop) >= f->due_ms)
        set_timed_out(f);
    else
        snprintf(f->why, sizeof(f->why), "%s",
                 error && error->text[0] ? error->text : sw_strerror(code));
}

static void on_end(void *arg, int code, const struct sw_error *error)
{
    struct sw_fetching *f = arg;
    struct sw_error words = {0};

    f->exchange = NULL;
    if (!code && !f->location) {
        const struct sw_fetch_answer answer = {
            .status = f->status, .why = "", .body = f->body.bytes, .body_len = f->body.len};
        finish(f, &answer);
        return;
    }
    if (!code) {
        code = follow(f, &words);
        error = &words;
    }
    if (code) {
        explain(f, code, error);
        finish_failed(f);
    }
}

/* ---- fetch.h ---- */

static void copy_fields(struct sw_fetching *f, const struct sw_fetch *fetch)
{
    bool has_authorization = false;

    for (size_t i = 0; i < fetch->field_count; i++) {
        add_field(f, fetch->fields[i].name, fetch->fields[i].value);
        has_authorization |= strcasecmp(fetch->fields[i].name, "Authorization") == 0;
    }
    if (f->url.username && !has_authorization) {
        char *basic = sw_http_basic(f->url.username, f->url.password ? f->url.password : "");
        add_field(f, "Authorization", basic);
        sw_free_secret_text(basic);
    }
}

static struct sw_fetching *fetching_new(struct sw_instance *self, const struct sw_fetch *fetch,
                                        const char *method, struct sw_url_request *url_taken,
                                        sw_fetch_fn fn, void *arg)
{
    struct sw_core *core = self->core;
    struct sw_fetching *f = SW_NEW(struct sw_fetching);

    f->core = core;
    f->instance = self;
    f->fn = fn;
    f->arg = arg;
    f->method = method;
    f->url = *url_taken;
    f->insecure_skip_verify = fetch->insecure_skip_verify;
    f->ca_pem = fetch->ca_pem ? sw_strdup(fetch->ca_pem) : NULL;
    f->timeout_ms = fetch->timeout_ms ? fetch->timeout_ms : (uint32_t)TIMEOUT_MS;
    f->due_ms = sw_now_ms(core->loop) + f->timeout_ms;
    f->began_ns = sw_now_ns(core->loop);
    copy_fields(f, fetch);
    sw_buf_init(&f->body, fetch->body_limit_bytes ? fetch->body_limit_bytes : BODY_LIMIT_BYTES);
    sw_timer_init(&f->timer, core->loop, on_timer);
    sw_defer_init(&f->fail, core->loop, on_fail);
    sw_link_init(&f->link);
    sw_link_add_last(&core->fetches.all, &f->link);
    return f;
}

static void need_fetcher(struct sw_fetches *fetches)
{
    struct sw_core *core = fetches->core;

    if (fetches->fetcher)
        return;
    fetches->fetcher =
        sw_fetcher_http_new(core->loop, "slipway/" SW_VERSION, SW_FETCH_AT_ONCE, &core->log);
    fetches->is_own = true;
}

int sw_fetch(struct sw_instance *self, const struct sw_fetch *fetch, sw_fetch_fn fn, void *arg,
             struct sw_fetching **ret_fetching)
{
    bool is_post = strcmp(fetch->method, "POST") == 0;
    struct sw_url_request url;
    struct sw_error error = {0};

    if (!is_post && (strcmp(fetch->method, "GET") != 0 || fetch->body_len > 0))
        return -EINVAL;
    if (sw_url_request_parse(fetch->url, &url, NULL))
        return -EINVAL;
    need_fetcher(&self->core->fetches);
    struct sw_fetching *f = fetching_new(self, fetch, is_post ? "POST" : "GET", &url, fn, arg);
    const struct sw_http_request head = {.method = f->method,
                                         .target = f->url.target,
                                         .fields = f->fields,
                                         .field_count = f->field_count};
    if (!sw_http_is_sendable(&head)) {
        sw_fetch_cancel(f);
        return -EINVAL;
    }
    int code = send(f, fetch->body, fetch->body_len, &error);
    if (code) {
        explain(f, code, &error);
        fail_later(f);
    }
    if (ret_fetching)
        *ret_fetching = f;
    return 0;
}

int sw_url_check(const char *url, char *why, size_t why_size)
{
    struct sw_url_request parsed;
    struct sw_error error = {0};

    if (sw_url_request_parse(url, &parsed, &error)) {
        snprintf(why, why_size, "%.*s", (int)why_size - 1, error.text);
        return -EINVAL;
    }
    sw_url_request_done(&parsed);
    return 0;
}

const char *sw_url_escape(struct sw_arena *arena, const char *text)
{
    struct sw_buf escaped;

    sw_buf_init(&escaped, SIZE_MAX);
    sw_url_encode(&escaped, text);
    const char *copy = sw_arena_strndup(arena, escaped.bytes, escaped.len);
    sw_buf_done(&escaped);
    return copy;
}

/* ---- the core's side ---- */

void sw_fetches_init(struct sw_fetches *fetches, struct sw_core *core, struct sw_fetcher *fetcher)
{
    static const char *const labels[] = {"code", NULL};
    struct sw_metric_family *requests = sw_metrics_family(
        core->metrics, SW_METRIC_COUNTER, "slipway_fetch_requests_total",
        "Requests to servers other than the API server, by the class of the status; <error>: no "
        "whole answer.",
        labels, NULL, 0);
    struct sw_metric_family *seconds = sw_metrics_family(
        core->metrics, SW_METRIC_HISTOGRAM, "slipway_fetch_seconds",
        "Time of such requests, to the last byte of the answer or to the failure.", NULL, NULL, 0);

    fetches->core = core;
    fetches->fetcher = fetcher;
    sw_link_init(&fetches->all);
    for (size_t i = 0; i < SW_FETCH_CLASSES; i++)
        fetches->requests[i] = sw_metric_child(requests, &classes[i]);
    fetches->seconds = sw_metric_child(seconds, NULL);
}

void sw_fetches_forget(struct sw_fetches *fetches, const struct sw_instance *instance)
{
    SW_LIST_EACH (l, &fetches->all) {
        struct sw_fetching *f = container_of(l, struct sw_fetching, link);
        if (f->instance == instance)
            sw_fetch_cancel(f);
    }
}

void sw_fetches_done(struct sw_fetches *fetches)
{
    while (sw_link_is_used(&fetches->all))
        sw_fetch_cancel(container_of(fetches->all.next, struct sw_fetching, link));
    if (fetches->is_own)
        fetches->fetcher->ops->close(fetches->fetcher);
}
