/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetcher in memory.
 */
#include "fake_fetcher.h"

#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "net/url_request.h"

#include "../test.h"

static struct fake_fetcher *of(struct sw_fetcher *base)
{
    return container_of(base, struct fake_fetcher, base);
}

static void on_hook(struct sw_defer *defer)
{
    struct fake_fetch *request = container_of(defer, struct fake_fetch, hook);

    request->fetcher->on_request(request->fetcher->arg, request);
}

static char *url_of(const struct sw_fetcher_request *request)
{
    struct sw_buf authority;

    sw_buf_init(&authority, SIZE_MAX);
    assert_int_equal(sw_url_authority(request->origin, &authority), 0);
    char *url = sw_asprintf("%s%s%s", request->origin->is_https ? "https://" : "http://",
                            authority.bytes, request->http.target);
    sw_buf_done(&authority);
    return url;
}

static char *fields_of(const struct sw_http_request *http)
{
    struct sw_buf text;

    sw_buf_init(&text, SIZE_MAX);
    for (size_t i = 0; i < http->field_count; i++)
        sw_buf_printf(&text, "%s: %s\n", http->fields[i].name, http->fields[i].value);
    return sw_buf_steal(&text);
}

static int fake_send(struct sw_fetcher *base, const struct sw_fetcher_request *request,
                     const struct sw_http_exchange_events *events, void *arg, void **ret_exchange,
                     struct sw_error *error)
{
    struct fake_fetcher *fetcher = of(base);
    const struct sw_http_request *http = &request->http;

    if (fetcher->send_result)
        return sw_error_set(error, fetcher->send_result, "the test does not let it be sent");
    struct fake_fetch *r = SW_NEW(struct fake_fetch);
    r->fetcher = fetcher;
    r->number = fetcher->count;
    r->method = sw_strdup(http->method);
    r->url = url_of(request);
    r->fields = fields_of(http);
    r->body = sw_strndup(http->body_len ? http->body : "", http->body_len);
    r->body_len = http->body_len;
    r->insecure_skip_verify = request->insecure_skip_verify;
    r->ca_pem = request->ca_pem ? sw_strdup(request->ca_pem) : NULL;
    r->timeout_ms = http->total_timeout_ms;
    r->sent_ms = sw_now_ms(fetcher->loop);
    r->is_open = true;
    r->events = *events;
    r->arg = arg;
    sw_defer_init(&r->hook, fetcher->loop, on_hook);
    if (fetcher->on_request)
        sw_defer_start(&r->hook);
    fetcher->requests =
        sw_realloc(fetcher->requests, fetcher->count + 1, sizeof(*fetcher->requests));
    fetcher->requests[fetcher->count++] = r;
    assert_int_equal(events->on_send ? events->on_send(arg) : 0, 0);
    *ret_exchange = r;
    return 0;
}

static void fake_cancel(struct sw_fetcher *base, void *exchange)
{
    struct fake_fetch *r = exchange;

    (void)base;
    assert_true(r->is_open);
    r->is_open = false;
    r->was_cancelled = true;
    sw_defer_stop(&r->hook);
}

static void fake_close(struct sw_fetcher *base)
{
    fake_fetcher_free(of(base));
}

struct fake_fetcher *fake_fetcher_new(struct sw_loop *loop)
{
    static const struct sw_fetcher_ops ops = {fake_send, fake_cancel, fake_close};
    struct fake_fetcher *fetcher = SW_NEW(struct fake_fetcher);

    fetcher->base.ops = &ops;
    fetcher->loop = loop;
    return fetcher;
}

void fake_fetcher_free(struct fake_fetcher *fetcher)
{
    assert_int_equal(fake_fetch_open_count(fetcher), 0);
    for (unsigned i = 0; i < fetcher->count; i++) {
        struct fake_fetch *r = fetcher->requests[i];
        sw_defer_stop(&r->hook);
        sw_free(r->method);
        sw_free(r->url);
        sw_free(r->fields);
        sw_free(r->body);
        sw_free(r->ca_pem);
        sw_free(r);
    }
    sw_free(fetcher->requests);
    sw_free(fetcher);
}

unsigned fake_fetch_open_count(const struct fake_fetcher *fetcher)
{
    unsigned count = 0;

    for (unsigned i = 0; i < fetcher->count; i++)
        count += fetcher->requests[i]->is_open;
    return count;
}

struct fake_fetch *fake_fetch_find(struct fake_fetcher *fetcher, const char *text)
{
    struct fake_fetch *found = NULL;

    for (unsigned i = 0; i < fetcher->count; i++) {
        struct fake_fetch *r = fetcher->requests[i];
        if (!r->is_open || !strstr(r->url, text))
            continue;
        if (found)
            fail_msg("two open requests for \"%s\": %s and %s", text, found->url, r->url);
        found = r;
    }
    return found;
}

struct fake_fetch *fake_fetch_the(struct fake_fetcher *fetcher, const char *text)
{
    struct fake_fetch *found = fake_fetch_find(fetcher, text);

    if (!found)
        fail_msg("no open request for \"%s\"; %u were sent, the last one was %s", text,
                 fetcher->count,
                 fetcher->count ? fetcher->requests[fetcher->count - 1]->url : "none");
    return found;
}

const char *fake_fetch_field(const struct fake_fetch *request, const char *name)
{
    static char value[4096];
    size_t len = strlen(name);

    for (const char *at = request->fields; *at; at = strchr(at, '\n') + 1) {
        if (strncasecmp(at, name, len) == 0 && strncmp(at + len, ": ", 2) == 0) {
            snprintf(value, sizeof(value), "%.*s", (int)strcspn(at + len + 2, "\n"), at + len + 2);
            return value;
        }
    }
    return NULL;
}

void fake_fetch_head(struct fake_fetch *request, int status, const char *fields)
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

void fake_fetch_body(struct fake_fetch *request, const void *bytes, size_t len)
{
    char *copy = malloc(len); /* of exactly that size: reading beyond it is found */

    assert_true(request->is_open);
    memcpy(copy, bytes, len);
    request->events.on_body(request->arg, copy, len);
    free(copy);
}

void fake_fetch_end(struct fake_fetch *request, int code)
{
    struct sw_error error = {.code = code};

    if (code)
        sw_error_set(&error, code, "the test broke it: %s", sw_strerror(code));
    assert_true(request->is_open);
    request->is_open = false;
    request->events.on_end(request->arg, code, code ? &error : NULL);
}

void fake_fetch_answer(struct fake_fetch *request, int status, const char *fields, const char *body)
{
    struct sw_loop *loop = request->fetcher->loop;

    fake_fetch_head(request, status, fields);
    if (request->is_open && *body)
        fake_fetch_body(request, body, strlen(body));
    if (request->is_open)
        fake_fetch_end(request, 0);
    sw_loop_virtual_advance(loop, 0);
}

void fake_fetch_break(struct fake_fetch *request, int code)
{
    struct sw_loop *loop = request->fetcher->loop;

    fake_fetch_end(request, code);
    sw_loop_virtual_advance(loop, 0);
}
