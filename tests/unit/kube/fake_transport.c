/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport in memory.
 */
#include "fake_transport.h"

#include "base/error.h"
#include "base/util.h"
#include "net/url.h"

#include "test.h"

static struct fake_transport *of(struct sw_transport *base)
{
    return container_of(base, struct fake_transport, base);
}

static char *copy(const char *text)
{
    return text ? sw_strdup(text) : NULL;
}

static void on_hook(struct sw_defer *defer)
{
    struct fake_request *request = container_of(defer, struct fake_request, hook);
    request->transport->on_request(request->transport->arg, request);
}

static const char *field_of(const struct sw_http_request *request, const char *name)
{
    struct sw_http_fields fields = {request->fields, request->field_count};
    return sw_http_field_get(&fields, name);
}

static int fake_send(struct sw_transport *base, const struct sw_http_request *request,
                     const struct sw_http_exchange_events *events, void *arg, void **ret_exchange)
{
    struct fake_transport *t = of(base);
    if (t->send_result) {
        return t->send_result;
    }
    sw_assert(t->count < SW_ARRAY_SIZE(t->requests));
    struct fake_request *r = SW_NEW(struct fake_request);
    r->transport = t;
    r->number = t->count;
    r->method = copy(request->method);
    r->target = copy(request->target);
    r->body = request->body ? sw_strndup(request->body, request->body_len) : NULL;
    r->content_type = copy(field_of(request, "Content-Type"));
    r->lane = copy(request->own_connection);
    r->may_replay = request->may_replay;
    r->head_timeout_ms = request->head_timeout_ms;
    r->total_timeout_ms = request->total_timeout_ms;
    r->silence_timeout_ms = request->silence_timeout_ms;
    r->sent_ms = sw_now_ms(t->loop);
    r->is_open = r->was_sent = true;
    r->events = *events;
    r->arg = arg;
    sw_defer_init(&r->hook, t->loop, on_hook);
    if (t->on_request) {
        sw_defer_start(&r->hook);
    }
    t->requests[t->count++] = r;
    *ret_exchange = r;
    return 0;
}

static void fake_cancel(struct sw_transport *base, void *exchange)
{
    struct fake_request *r = exchange;
    (void)base;
    assert_true(r->is_open);
    r->is_open = false;
    r->was_cancelled = true;
    sw_defer_stop(&r->hook);
}

static void fake_abort(struct sw_transport *base, void *exchange)
{
    struct fake_request *r = exchange;
    fake_cancel(base, exchange);
    r->was_aborted = true;
}

static bool fake_was_sent(struct sw_transport *base, const void *exchange)
{
    (void)base;
    return ((const struct fake_request *)exchange)->was_sent;
}

static bool fake_refresh(struct sw_transport *base)
{
    of(base)->refreshes++;
    of(base)->credentials += of(base)->refresh_result;
    return of(base)->refresh_result;
}

static unsigned fake_credentials_number(struct sw_transport *base)
{
    return of(base)->credentials;
}

static void fake_close(struct sw_transport *base)
{
    fake_transport_free(of(base));
}

struct fake_transport *fake_transport_new(struct sw_loop *loop)
{
    static const struct sw_transport_ops ops = {
        .send = fake_send,
        .cancel = fake_cancel,
        .abort = fake_abort,
        .was_sent = fake_was_sent,
        .refresh_credentials = fake_refresh,
        .credentials_number = fake_credentials_number,
        .close = fake_close,
    };
    struct fake_transport *t = SW_NEW(struct fake_transport);
    t->base.ops = &ops;
    t->loop = loop;
    return t;
}

void fake_transport_free(struct fake_transport *t)
{
    assert_int_equal(fake_open_count(t), 0);
    for (unsigned i = 0; i < t->count; i++) {
        struct fake_request *r = t->requests[i];
        sw_defer_stop(&r->hook);
        sw_free(r->method);
        sw_free(r->target);
        sw_free(r->body);
        sw_free(r->content_type);
        sw_free(r->lane);
        sw_free(r);
    }
    sw_free(t);
}

unsigned fake_open_count(const struct fake_transport *t)
{
    unsigned count = 0;
    for (unsigned i = 0; i < t->count; i++) {
        count += t->requests[i]->is_open;
    }
    return count;
}

struct fake_request *fake_find(struct fake_transport *t, const char *text)
{
    struct fake_request *found = NULL;
    for (unsigned i = 0; i < t->count; i++) {
        struct fake_request *r = t->requests[i];
        if (r->is_open && strstr(r->target, text)) {
            if (found) {
                fail_msg("two open requests for \"%s\": %s and %s", text, found->target, r->target);
            }
            found = r;
        }
    }
    return found;
}

struct fake_request *fake_the(struct fake_transport *t, const char *text)
{
    struct fake_request *found = fake_find(t, text);
    if (!found) {
        fail_msg("no open request for \"%s\"; %u were sent, the last one was %s", text, t->count,
                 t->count ? t->requests[t->count - 1]->target : "none");
    }
    return found;
}

const char *fake_query(const struct fake_request *request, const char *name)
{
    static char *value;
    char key[128];
    const char *query = strchr(request->target, '?');
    value = sw_free(value);
    snprintf(key, sizeof(key), "%s=", name);
    for (const char *at = query; at; at = strchr(at, '&')) {
        at++;
        if (strncmp(at, key, strlen(key)) == 0) {
            at += strlen(key);
            assert_int_equal(sw_url_decode(at, strcspn(at, "&"), &value), 0);
            return value;
        }
    }
    return "";
}

bool fake_leaves(struct fake_request *request)
{
    const struct sw_http_exchange_events *events = &request->events;
    int rc = events->on_send ? events->on_send(request->arg) : 0;
    assert_true(request->is_open);
    if (rc < 0) {
        request->was_sent = false;
        fake_break(request, rc);
    }
    return rc == 0;
}

void fake_head(struct fake_request *request, int status, const char *fields)
{
    struct sw_http_field at[16];
    SW_AUTO(char, sw_free) text = sw_strdup(fields ? fields : "");
    size_t count = 0;
    char *rest = text;
    char *line;
    while ((line = strsep(&rest, "\n")) && *line) {
        char *colon = strstr(line, ": ");
        assert_non_null(colon);
        *colon = '\0';
        assert_true(count < SW_ARRAY_SIZE(at));
        at[count++] = (struct sw_http_field){line, colon + 2};
    }
    struct sw_http_head head = {
        .status = status, .fields = {at, count}, .keeps_alive = true, .content_length = -1};
    assert_true(request->is_open);
    request->events.on_head(request->arg, &head);
}

void fake_body(struct fake_request *request, const char *text)
{
    assert_true(request->is_open);
    /* A copy of exactly that size: reading beyond it is found. */
    size_t len = strlen(text);
    char *bytes = malloc(len);
    memcpy(bytes, text, len);
    request->events.on_body(request->arg, bytes, len);
    free(bytes);
}

void fake_end(struct fake_request *request, int code)
{
    struct sw_error error = {.code = code};
    if (code) {
        sw_error_set(&error, code, "the test broke it: %s", sw_strerror(code));
    }
    assert_true(request->is_open);
    request->is_open = false;
    request->events.on_end(request->arg, code, code ? &error : NULL);
}

void fake_answer(struct fake_request *request, int status, const char *fields, const char *body)
{
    struct sw_loop *loop = request->transport->loop;
    fake_head(request, status, fields);
    if (request->is_open && *body) {
        fake_body(request, body);
    }
    if (request->is_open) {
        fake_end(request, 0);
    }
    sw_loop_virtual_advance(loop, 0);
}

void fake_break(struct fake_request *request, int code)
{
    struct sw_loop *loop = request->transport->loop;
    fake_end(request, code);
    sw_loop_virtual_advance(loop, 0);
}

/* ---- log ---- */

static void on_line(void *arg, const char *line, size_t len)
{
    struct fake_log *log = arg;
    size_t room = sizeof(log->text) - 1 - log->len;
    size_t taken = SW_MIN(len, room);
    memcpy(log->text + log->len, line, taken);
    log->len += taken;
    log->text[log->len] = '\0';
}

void fake_log_init(struct fake_log *log, struct sw_loop *loop)
{
    memset(log, 0, sizeof(*log));
    log->sink = sw_log_sink_new(loop, -1, SW_LOG_CONSOLE, SW_LEVEL_DEBUG);
    sw_log_sink_set_fn(log->sink, on_line, log);
    log->log.sink = log->sink;
    log->log.name = "test";
}

void fake_log_done(struct fake_log *log)
{
    sw_log_sink_free(log->sink);
}

bool fake_log_has(const struct fake_log *log, const char *text)
{
    return strstr(log->text, text) != NULL;
}

unsigned fake_log_count(const struct fake_log *log, const char *text)
{
    unsigned count = 0;
    for (const char *at = log->text; (at = strstr(at, text)); at++) {
        count++;
    }
    return count;
}
