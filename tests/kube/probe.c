/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program around credentials, client, reflector and lease, for tests against a real API server:
 * it says on standard output what they tell, one line an event, and does what lines on standard
 * input ask for. What follows --watch and --lease is optional; without either it only calls.
 *
 *     probe [--kubeconfig FILE] [--context NAME] [--namespace NS] [--watch]
 *           [--lease NAME --identity ID] [...]
 *
 *     + a 17 one      ConfigMap a was added with version 17 and data.value "one"; ~ changed, - gone
 *     listed consistent 3            or "listed cached 3": so many objects
 *     leading 4       with that term; and "lost"
 *     reply 7 200 0 sent a           the call 7: status, code, whether it was sent, name or message
 *
 *     relist          a consistent list
 *     state           "state a=one b=two": the store, sorted
 *     age             "age 1234": of the picture, in ms
 *     put a one       PATCH of data.value without a precondition; fenced; "reply"
 *     put a one 17    the same if the version still is 17
 *     get a           "reply"
 *     fence           drops what put has under way
 *     release         gives the lease up: "released"
 *     quit            closes everything; the exit status is 0 if nothing was left open
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include <slipway/json.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/credentials.h"
#include "kube/decode.h"
#include "kube/lease.h"
#include "kube/reflector.h"
#include "kube/store.h"
#include "kube/transport.h"
#include "net/url.h"

struct config_map {
    struct sw_object meta;
    const char *value;
};

static const struct sw_bind fields[] = {
    SW_BIND("/data/value", SW_BIND_STRING, struct config_map, value),
    SW_BIND_END,
};

static const struct sw_kind config_maps = {.group = "",
                                           .version = "v1",
                                           .kind = "ConfigMap",
                                           .plural = "configmaps",
                                           .size = sizeof(struct config_map),
                                           .fields = fields};

struct probe {
    struct sw_loop *loop;
    struct sw_log_sink *sink;
    struct sw_log log;
    struct sw_metrics *metrics;
    struct sw_credentials *credentials;
    struct sw_transport *transport;
    struct sw_client *client;
    struct sw_intern *intern;
    struct sw_decoder *decoder;
    struct sw_store *store;
    struct sw_reflector *reflector;
    struct sw_lease *lease;

    char *namespace_;
    unsigned calls;
    struct sw_link under_way;
    uv_poll_t input;
    struct sw_buf line;
};

struct call {
    struct sw_link link;
    unsigned number;
    struct sw_arena *arena;
};

/* ---- what is told ---- */

static void say(const char *format, ...) SW_PRINTF(1, 2);
static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static const char *value_of(const struct sw_object *object)
{
    return ((const struct config_map *)(const void *)object)->value;
}

static void on_change(void *arg, const struct sw_change *change)
{
    (void)arg;
    const struct sw_object *o = change->now ? change->now : change->old;
    say("%c %s %s %s", "+~-"[change->type], o -> name, o -> resource_version, value_of(o));
}

static void on_listed(void *arg, bool is_consistent)
{
    struct probe *p = arg;
    say("listed %s %zu", is_consistent ? "consistent" : "cached", sw_store_size(p->store));
}

static bool may_write(void *arg)
{
    struct probe *p = arg;
    return !p->lease || sw_lease_is_held(p->lease);
}

static void on_lease(void *arg, bool is_leading)
{
    struct probe *p = arg;
    if (is_leading) {
        say("leading %lld", (long long)sw_lease_transitions(p->lease));
    } else {
        sw_client_fence(p->client);
        say("lost");
    }
}

static void on_released(void *arg)
{
    (void)arg;
    say("released");
}

static void call_free(struct call *call)
{
    sw_link_remove(&call->link);
    sw_arena_free(call->arena);
    sw_free(call);
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct call *call = arg;
    struct sw_json *body;
    const char *what = reply->code ? reply->error->text : reply->why.message;
    if (!reply->code && reply->status < 300 &&
        sw_json_parse(call->arena, reply->body, reply->body_len, &body, NULL) == 0) {
        what = sw_json_text(sw_json_at(body, "metadata", "resourceVersion", NULL));
    }
    say("reply %u %d %d %s %s", call->number, reply->status, reply->code,
        reply->was_sent ? "sent" : "unsent", what ? what : "");
    call_free(call);
}

/* ---- what is asked for ---- */

static void start_call(struct probe *p, struct sw_call_options *options, const char *name)
{
    char *path;
    if (sw_client_path(&config_maps, p->namespace_, name, NULL, &path)) {
        say("error: no such name");
        return;
    }
    struct call *call = SW_NEW(struct call);
    struct sw_call *ignored;
    sw_link_init(&call->link);
    sw_link_add_last(&p->under_way, &call->link);
    call->number = ++p->calls;
    call->arena = sw_arena_new(0);
    options->path = path;
    int rc = sw_client_call(p->client, options, on_reply, call, &ignored);
    if (rc) {
        say("reply %u 0 %d unsent %s", call->number, rc, sw_strerror(rc));
        call_free(call);
    }
    sw_free(path);
}

static void put(struct probe *p, const char *name, const char *value, const char *version)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *patch = sw_json_object(arena);
    sw_json_set_string(sw_json_set_object(patch, "data"), "value", value);
    if (version) {
        sw_json_set_string(sw_json_set_object(patch, "metadata"), "resourceVersion", version);
    }
    size_t len;
    const char *body = sw_json_dump(patch, arena, &len);
    struct sw_call_options options = {
        .method = "PATCH",
        .content_type = "application/merge-patch+json",
        .body = body,
        .body_len = len,
        .is_guarded = version != NULL,
        .is_fenced = true,
    };
    start_call(p, &options, name);
    sw_arena_free(arena);
}

struct names {
    const struct sw_object *at[2000];
    size_t count;
};

static bool collect(void *arg, const struct sw_object *object)
{
    struct names *names = arg;
    sw_assert(names->count < SW_ARRAY_SIZE(names->at));
    names->at[names->count++] = object;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct sw_object *const *x = a;
    const struct sw_object *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void tell_state(struct probe *p)
{
    struct names names = {0};
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    sw_store_each(p->store, NULL, collect, &names);
    qsort(names.at, names.count, sizeof(names.at[0]), by_name);
    for (size_t i = 0; i < names.count; i++) {
        sw_buf_printf(&text, " %s=%s", names.at[i]->name, value_of(names.at[i]));
    }
    say("state%s", text.bytes);
    sw_buf_done(&text);
}

static void quit(struct probe *p)
{
    uv_poll_stop(&p->input);
    uv_close((uv_handle_t *)&p->input, NULL);
    p->lease = sw_lease_free(p->lease);
    p->reflector = sw_reflector_free(p->reflector);
    p->client = sw_client_free(p->client);
    SW_LIST_EACH (link, &p->under_way) {
        call_free(container_of(link, struct call, link));
    }
    if (p->transport) {
        p->transport->ops->close(p->transport);
        p->transport = NULL;
    }
    sw_credentials_close(p->credentials);
    p->credentials = NULL;
}

static void obey(struct probe *p, char *line)
{
    char *word[4] = {0};
    for (size_t i = 0; i < SW_ARRAY_SIZE(word) && line; i++) {
        word[i] = strsep(&line, " ");
    }
    if (strcmp(word[0], "relist") == 0) {
        sw_reflector_relist(p->reflector);
    } else if (strcmp(word[0], "state") == 0) {
        tell_state(p);
    } else if (strcmp(word[0], "age") == 0) {
        say("age %llu", (unsigned long long)sw_reflector_age_ms(p->reflector));
    } else if (strcmp(word[0], "put") == 0 && word[2]) {
        put(p, word[1], word[2], word[3]);
    } else if (strcmp(word[0], "get") == 0 && word[1]) {
        struct sw_call_options options = {.method = "GET"};
        start_call(p, &options, word[1]);
    } else if (strcmp(word[0], "fence") == 0) {
        sw_client_fence(p->client);
    } else if (strcmp(word[0], "release") == 0) {
        sw_lease_release(p->lease, on_released, p);
    } else if (strcmp(word[0], "quit") == 0) {
        quit(p);
    } else {
        say("error: what is \"%s\"?", word[0]);
    }
}

static void on_input(uv_poll_t *handle, int status, int events)
{
    struct probe *p = container_of(handle, struct probe, input);
    char bytes[4096];
    ssize_t len = read(STDIN_FILENO, bytes, sizeof(bytes));
    (void)status;
    (void)events;
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (len <= 0) {
        quit(p);
        return;
    }
    sw_buf_append(&p->line, bytes, (size_t)len);
    char *end;
    while (p->client && (end = strchr(p->line.bytes, '\n'))) {
        SW_AUTO(char, sw_free) line = sw_strndup(p->line.bytes, (size_t)(end - p->line.bytes));
        sw_buf_consume(&p->line, strlen(line) + 1);
        obey(p, line);
    }
}

/* ---- start ---- */

struct arguments {
    struct sw_credentials_options where;
    const char *namespace_, *lease, *identity;
    bool watches;
    struct sw_client_options client;
    struct sw_reflector_options reflector;
    struct sw_lease_options timings;
};

static int usage(const char *what)
{
    fprintf(stderr, "probe: %s; see the head of probe.c\n", what);
    return 2;
}

static int read_arguments(int argc, char **argv, struct arguments *ret)
{
    static const struct option options[] = {
        {"kubeconfig", required_argument, NULL, 'k'},
        {"context", required_argument, NULL, 'c'},
        {"namespace", required_argument, NULL, 'n'},
        {"watch", no_argument, NULL, 'w'},
        {"lease", required_argument, NULL, 'l'},
        {"identity", required_argument, NULL, 'i'},
        {"page-size", required_argument, NULL, 'p'},
        {"backoff-ms", required_argument, NULL, 'b'},
        {"backoff-limit-ms", required_argument, NULL, 'm'},
        {"silence-ms", required_argument, NULL, 's'},
        {"watch-seconds", required_argument, NULL, 't'},
        {"lease-ms", required_argument, NULL, 'd'},
        {"deadline-ms", required_argument, NULL, 'e'},
        {"retry-ms", required_argument, NULL, 'r'},
        {"optional", no_argument, NULL, 'o'},
        {"stream", no_argument, NULL, 'y'},
        {NULL, 0, NULL, 0},
    };
    struct arguments a = {.namespace_ = "default"};
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        unsigned long number = optarg ? strtoul(optarg, NULL, 10) : 0;
        switch (c) {
        case 'k':
            a.where.kubeconfig = optarg;
            break;
        case 'c':
            a.where.context = optarg;
            break;
        case 'n':
            a.namespace_ = optarg;
            break;
        case 'w':
            a.watches = true;
            break;
        case 'l':
            a.lease = optarg;
            break;
        case 'i':
            a.identity = optarg;
            break;
        case 'p':
            a.reflector.page_size = (unsigned)number;
            break;
        case 'b':
            a.client.backoff_first_ms = number;
            break;
        case 'm':
            a.client.backoff_limit_ms = number;
            break;
        case 's':
            a.reflector.silence_ms = number;
            break;
        case 't':
            a.reflector.watch_seconds = (unsigned)number;
            break;
        case 'd':
            a.timings.duration_ms = number;
            break;
        case 'e':
            a.timings.renew_deadline_ms = number;
            break;
        case 'r':
            a.timings.retry_ms = number;
            break;
        case 'o':
            a.reflector.is_optional = true;
            break;
        case 'y':
            a.reflector.streams_lists = true;
            break;
        default:
            return -EINVAL;
        }
    }
    if (optind != argc || (a.lease && !a.identity)) {
        return -EINVAL;
    }
    *ret = a;
    return 0;
}

static int start(struct probe *p, struct arguments *a, struct sw_error *error)
{
    int rc = sw_credentials_open(p->loop, &a->where, &p->log, &p->credentials, error);
    rc = rc ? rc
            : sw_transport_http_open(p->loop, p->credentials, "probe", &p->log, &p->transport,
                                     error);
    if (rc) {
        sw_credentials_close(p->credentials);
        p->credentials = NULL;
        return rc;
    }
    a->client.path_prefix = sw_credentials_server(p->credentials)->path;
    a->client.host = sw_credentials_server(p->credentials)->host;
    p->client = sw_client_new(p->loop, p->transport, &a->client, p->metrics, &p->log);
    sw_client_set_may_write(p->client, may_write, p);
    if (a->watches) {
        a->reflector.kind = &config_maps;
        a->reflector.namespace_ = a->namespace_;
        p->reflector = sw_reflector_new(p->loop, p->client, p->decoder, p->store, &a->reflector,
                                        p->metrics, &p->log, on_listed, p);
    }
    if (a->lease) {
        a->timings.namespace_ = a->namespace_;
        a->timings.name = a->lease;
        a->timings.identity = a->identity;
        p->lease = sw_lease_new(p->loop, p->client, &a->timings, p->metrics, &p->log, on_lease, p);
    }
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    sw_assert(uv_poll_init(sw_loop_uv(p->loop), &p->input, STDIN_FILENO) == 0);
    sw_assert(uv_poll_start(&p->input, UV_READABLE | UV_DISCONNECT, on_input) == 0);
    return 0;
}

int main(int argc, char **argv)
{
    struct probe p = {0};
    struct arguments arguments;
    struct sw_error error = {0};
    if (read_arguments(argc, argv, &arguments)) {
        return usage("wrong arguments");
    }
    sw_assert(sw_loop_open(&p.loop) == 0);
    p.sink = sw_log_sink_new(p.loop, STDERR_FILENO, SW_LOG_CONSOLE, SW_LEVEL_DEBUG);
    p.log = (struct sw_log){.sink = p.sink, .name = "probe"};
    p.metrics = sw_metrics_new();
    p.intern = sw_intern_new();
    p.decoder = sw_decoder_new(&config_maps, p.intern);
    p.store = sw_store_new(p.loop, p.decoder, on_change, &p);
    p.namespace_ = sw_strdup(arguments.namespace_);
    sw_link_init(&p.under_way);
    sw_buf_init(&p.line, 65536);
    int rc = start(&p, &arguments, &error);
    if (rc) {
        say("error: %s", error.text);
    } else {
        say("started");
        sw_loop_run(p.loop);
    }
    sw_store_free(p.store);
    sw_decoder_free(p.decoder);
    sw_intern_free(p.intern);
    sw_metrics_free(p.metrics);
    sw_free(p.namespace_);
    sw_buf_done(&p.line);
    sw_log_sink_free(p.sink);
    return sw_loop_close(p.loop) || rc ? 1 : 0;
}
