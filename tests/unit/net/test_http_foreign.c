/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP with peers that share no code with us: nginx as server and as a proxy in front of ours,
 * Python's http.client, and bytes typed into openssl s_client.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "foreign.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "test.h"

#include <slipway/arena.h>

enum {
    BIG = 20 * 1000 * 1000, /* of a file */
    GUARD_MS = 20000,       /* nothing here takes a second */
};

static struct {
    struct sw_loop *loop;
    uv_timer_t guard;
    const char *waits_for;
    struct child nginx;
    uint16_t plain_port, tls_port;
    struct sw_http_server *server;
    uint16_t server_port;
    unsigned max_connections;
    uint64_t patience_ms;
    int requests;
    char order[64]; /* their paths, as far as they fit */
    int closed;
} w;

static const struct sw_log no_log;

/* ---- the loop, until something has happened ---- */

static void too_long(uv_timer_t *timer)
{
    (void)timer;
    fail_msg("waited in vain for %s", w.waits_for);
}

static void run_until(const int *flag, const char *what)
{
    w.waits_for = what;
    uv_timer_start(&w.guard, too_long, GUARD_MS, 0);
    while (!*flag) {
        uv_run(sw_loop_uv(w.loop), UV_RUN_ONCE);
    }
    uv_timer_stop(&w.guard);
}

static void loop_begin(void)
{
    memset(&w, 0, sizeof(w));
    assert_int_equal(sw_loop_open(&w.loop), 0);
    uv_timer_init(sw_loop_uv(w.loop), &w.guard);
}

static void loop_finish(void)
{
    uv_close((uv_handle_t *)&w.guard, NULL);
    sw_loop_run(w.loop);
    assert_int_equal(sw_loop_close(w.loop), 0);
}

/* ---- nginx ---- */

/* One that was free a moment ago: nginx cannot be asked to choose. */
static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void make_www(void)
{
    static char bytes[BIG];
    for (size_t i = 0; i < BIG; i++) {
        bytes[i] = (char)('a' + i % 26);
    }
    mkdir(folder_path("www"), 0755);
    test_write_file(folder_path("www/empty"), "", 0);
    test_write_file(folder_path("www/small"), "small\n", 6);
    test_write_file(folder_path("www/big"), bytes, BIG);
    mkdir(folder_path("www/chunked"), 0755);
    test_write_file(folder_path("www/chunked/some"), bytes, 1000000);
    mkdir(folder_path("www/slow"), 0755);
    test_write_file(folder_path("www/slow/some"), bytes, 300000);
}

static void start_nginx(void)
{
    static const char format[] =
        "worker_processes 1; daemon off; pid %s; error_log stderr notice; %s\n"
        "events { worker_connections 256; }\n"
        "http {\n"
        "  access_log off; client_body_temp_path %s; proxy_temp_path %s; fastcgi_temp_path %s;\n"
        "  uwsgi_temp_path %s; scgi_temp_path %s; keepalive_requests 1000000;\n"
        "  upstream back { server 127.0.0.1:%u; keepalive 8; }\n"
        "  server {\n"
        "    listen 127.0.0.1:%u; listen 127.0.0.1:%u ssl;\n"
        "    ssl_certificate %s; ssl_certificate_key %s;\n"
        "    root %s;\n"
        "    location /chunked/ { ssi on; ssi_types *; }\n"
        "    location /slow/ { limit_rate 400k; limit_rate_after 1; }\n"
        "    location /nothing { return 204; }\n"
        "    location /close { keepalive_timeout 0; return 200 closed; }\n"
        "    location /strict { client_max_body_size 1k; return 200 taken; }\n"
        "    location /back/ {\n"
        "      client_max_body_size 0; proxy_http_version 1.1; proxy_request_buffering off;\n"
        "      proxy_set_header Connection \"\"; proxy_pass http%s://back;\n"
        "      proxy_ssl_trusted_certificate %s; proxy_ssl_verify on;\n"
        "      proxy_ssl_name server.test; proxy_ssl_server_name on;\n"
        "    }\n"
        "  }\n"
        "}\n";
    char *text = NULL;
    w.plain_port = free_port();
    w.tls_port = free_port();
    assert_true(asprintf(&text, format, folder_path("nginx.pid"),
                         geteuid() == 0 ? "user root;" : "", folder_path("t1"), folder_path("t2"),
                         folder_path("t3"), folder_path("t4"), folder_path("t5"),
                         w.server_port ? w.server_port : 1, w.plain_port, w.tls_port,
                         folder_path("both.pem"), folder_path("both.key"), folder_path("www"),
                         w.server_port ? "s" : "", folder_path("ca.pem")) > 0);
    test_write_file(folder_path("nginx.conf"), text, strlen(text));
    free(text);
    child_start(&w.nginx,
                (const char *[]){"nginx", "-e", "stderr", "-c", folder_path("nginx.conf"), NULL});
    child_expect(&w.nginx, "start worker process");
}

/* ---- one request, waited for ---- */

struct reply {
    int status;
    struct sw_buf body;
    char length[24];
    char coding[24];
    int has_ended;
    int code;
    struct sw_error error;
};

static void reply_head(void *arg, const struct sw_http_head *head)
{
    struct reply *reply = arg;
    const char *length = sw_http_field_get(&head->fields, "content-length");
    const char *coding = sw_http_field_get(&head->fields, "transfer-encoding");
    reply->status = head->status;
    snprintf(reply->length, sizeof(reply->length), "%.23s", length ? length : "");
    snprintf(reply->coding, sizeof(reply->coding), "%.23s", coding ? coding : "");
}

static void reply_body(void *arg, const char *bytes, size_t len)
{
    sw_buf_append(&((struct reply *)arg)->body, bytes, len);
}

static void reply_end(void *arg, int code, const struct sw_error *error)
{
    struct reply *reply = arg;
    reply->code = code;
    reply->error = *error;
    reply->has_ended = 1;
}

static const struct sw_http_exchange_events reply_events = {reply_head, reply_body, reply_end};

static void ask(struct sw_http_client *client, struct reply *reply,
                const struct sw_http_request *request)
{
    memset(reply, 0, sizeof(*reply));
    sw_buf_init(&reply->body, SIZE_MAX);
    assert_int_equal(sw_http_send(client, request, &reply_events, reply, NULL), 0);
    run_until(&reply->has_ended, request->target);
}

static void get(struct sw_http_client *client, struct reply *reply, const char *target)
{
    ask(client, reply, &(struct sw_http_request){.method = "GET", .target = target});
}

static void assert_whole(struct reply *reply, int status, size_t len)
{
    if (reply->code != 0 || reply->status != status || reply->body.len != len) {
        fail_msg("got code %d (%s), status %d, %zu bytes; want status %d, %zu bytes", reply->code,
                 reply->error.text, reply->status, reply->body.len, status, len);
    }
    sw_buf_done(&reply->body);
}

static struct sw_http_client *connect_to(uint16_t port, struct sw_tls_config *tls)
{
    struct sw_http_client *client;
    const struct sw_http_client_options options = {
        .host = "127.0.0.1", .port = port, .tls = tls, .user_agent = "slipway-test"};
    assert_int_equal(sw_http_client_open(w.loop, &options, &no_log, &client), 0);
    return client;
}

static struct sw_tls_config *trust(const char *name)
{
    struct sw_error error = {0};
    struct sw_tls_config *tls;
    char *ca = folder_read(name);
    const struct sw_tls_client_options options = {.ca_pem = ca};
    assert_int_equal(sw_tls_client_config_new(&options, &tls, &error), 0);
    sw_free(ca);
    return tls;
}

/* ---- our client, nginx as server ---- */

static void ask_everything(struct sw_http_client *client)
{
    struct reply r;
    get(client, &r, "/small");
    assert_string_equal(r.body.bytes, "small\n");
    assert_whole(&r, 200, 6);
    get(client, &r, "/empty");
    assert_whole(&r, 200, 0);
    get(client, &r, "/nothing");
    assert_whole(&r, 204, 0);
    get(client, &r, "/absent");
    assert_int_equal(r.code, 0);
    assert_int_equal(r.status, 404);
    sw_buf_done(&r.body);
    ask(client, &r, &(struct sw_http_request){.method = "HEAD", .target = "/big"});
    assert_string_equal(r.length, "20000000");
    assert_whole(&r, 200, 0);
    get(client, &r, "/big");
    for (size_t i = 0; i < r.body.len; i++) {
        assert_true(r.body.bytes[i] == (char)('a' + i % 26));
    }
    assert_whole(&r, 200, BIG);
    get(client, &r, "/chunked/some");
    assert_string_equal(r.coding, "chunked");
    for (size_t i = 0; i < r.body.len; i++) {
        assert_true(r.body.bytes[i] == (char)('a' + i % 26));
    }
    assert_whole(&r, 200, 1000000);
    assert_int_equal(sw_http_client_connects(client), 1);
    get(client, &r, "/close");
    assert_whole(&r, 200, 6);
    assert_int_equal(sw_http_client_connections(client), 0);
    get(client, &r, "/small");
    assert_whole(&r, 200, 6);
    assert_int_equal(sw_http_client_connects(client), 2);
}

TEST(nginx_answers_us)
{
    loop_begin();
    start_nginx();
    struct sw_http_client *client = connect_to(w.plain_port, NULL);
    ask_everything(client);
    sw_http_client_close(client);
    loop_finish();
    child_end(&w.nginx);
}

TEST(nginx_answers_us_over_tls)
{
    loop_begin();
    start_nginx();
    struct sw_tls_config *tls = trust("ca.pem");
    struct sw_http_client *client = connect_to(w.tls_port, tls);
    ask_everything(client);
    sw_http_client_close(client);
    sw_tls_config_unref(tls);
    loop_finish();
    child_end(&w.nginx);
}

TEST(a_refusal_in_the_middle_of_our_body_is_read)
{
    static char body[5000000];
    struct reply r;
    loop_begin();
    start_nginx();
    struct sw_http_client *client = connect_to(w.plain_port, NULL);
    ask(client, &r,
        &(struct sw_http_request){
            .method = "POST", .target = "/strict", .body = body, .body_len = sizeof(body)});
    assert_int_equal(r.code, 0);
    assert_int_equal(r.status, 413);
    sw_buf_done(&r.body);
    ask(client, &r,
        &(struct sw_http_request){
            .method = "POST", .target = "/strict", .body = body, .body_len = 1000});
    assert_whole(&r, 200, 5);
    sw_http_client_close(client);
    loop_finish();
    child_end(&w.nginx);
}

TEST(a_slow_answer_is_waited_for_within_its_deadlines)
{
    struct reply r;
    loop_begin();
    start_nginx();
    struct sw_http_client *client = connect_to(w.plain_port, NULL);
    ask(client, &r,
        &(struct sw_http_request){
            .method = "GET", .target = "/slow/some", .silence_timeout_ms = 10000});
    assert_whole(&r, 200, 300000);
    ask(client, &r,
        &(struct sw_http_request){
            .method = "GET", .target = "/slow/some", .total_timeout_ms = 100});
    assert_int_equal(r.code, -ETIMEDOUT);
    assert_non_null(strstr(r.error.text, "127.0.0.1:"));
    assert_true(r.body.len < 300000);
    sw_buf_done(&r.body);
    sw_http_client_close(client);
    loop_finish();
    child_end(&w.nginx);
}

/* Four at a time, while nginx replaces its worker again and again: the old one closes its idle
 * connections at just the time at which they are used again. */
struct burst {
    struct sw_http_client *client;
    int left;
    int under_way;
    int done;
};

static void burst_next(struct burst *burst);

static void burst_end(void *arg, int code, const struct sw_error *error)
{
    struct burst *burst = arg;
    if (code) {
        fail_msg("a request was lost: %s", error->text);
    }
    burst->under_way--;
    burst_next(burst);
}

static void burst_next(struct burst *burst)
{
    static const struct sw_http_exchange_events events = {.on_end = burst_end};
    while (burst->left > 0 && burst->under_way < 4) {
        if (burst->left % 100 == 0) {
            assert_int_equal(kill(w.nginx.pid, SIGHUP), 0);
        }
        burst->left--;
        burst->under_way++;
        assert_int_equal(
            sw_http_send(burst->client,
                         &(struct sw_http_request){.method = "GET", .target = "/small"}, &events,
                         burst, NULL),
            0);
    }
    burst->done = burst->under_way == 0;
}

TEST(no_request_is_lost_while_nginx_reloads)
{
    loop_begin();
    start_nginx();
    struct burst burst = {.client = connect_to(w.plain_port, NULL), .left = 2000};
    burst_next(&burst);
    run_until(&burst.done, "the burst");
    sw_http_client_close(burst.client);
    loop_finish();
    child_end(&w.nginx);
}

TEST(a_port_where_nobody_listens_is_named)
{
    struct reply r;
    loop_begin();
    struct sw_http_client *client = connect_to(free_port(), NULL);
    get(client, &r, "/");
    assert_int_equal(r.code, -ECONNREFUSED);
    assert_non_null(strstr(r.error.text, "127.0.0.1"));
    sw_buf_done(&r.body);
    sw_http_client_close(client);
    loop_finish();
}

TEST(credentials_are_replaced_between_two_requests)
{
    struct reply r;
    loop_begin();
    start_nginx();
    struct sw_tls_config *wrong = trust("stranger.pem"), *right = trust("ca.pem");
    struct sw_http_client *client = connect_to(w.tls_port, wrong);
    get(client, &r, "/small");
    assert_int_equal(r.code, SW_E_CERTIFICATE);
    sw_buf_done(&r.body);
    sw_http_client_set_tls(client, right);
    get(client, &r, "/small");
    assert_whole(&r, 200, 6);
    sw_http_client_set_tls(client, wrong); /* the idle connection is trusted no longer */
    get(client, &r, "/small");
    assert_int_equal(r.code, SW_E_CERTIFICATE);
    sw_buf_done(&r.body);
    /* Replaced while it connects. */
    memset(&r, 0, sizeof(r));
    sw_buf_init(&r.body, SIZE_MAX);
    assert_int_equal(sw_http_send(client,
                                  &(struct sw_http_request){.method = "GET", .target = "/small"},
                                  &reply_events, &r, NULL),
                     0);
    uv_run(sw_loop_uv(w.loop), UV_RUN_NOWAIT);
    sw_http_client_set_tls(client, right);
    run_until(&r.has_ended, "the replaced connection");
    assert_whole(&r, 200, 6);
    sw_http_client_close(client);
    sw_tls_config_unref(wrong);
    sw_tls_config_unref(right);
    loop_finish();
    child_end(&w.nginx);
}

/* ---- our server ---- */

static struct sw_tls_config *serve_as(const char *name)
{
    struct sw_error error = {0};
    struct sw_tls_config *tls;
    char file[64];
    snprintf(file, sizeof(file), "%s.pem", name);
    char *certificate = folder_read(file);
    snprintf(file, sizeof(file), "%s.key", name);
    char *key = folder_read(file);
    const struct sw_tls_server_options options = {.certificate_pem = certificate, .key_pem = key};
    assert_int_equal(sw_tls_server_config_new(&options, &tls, &error), 0);
    sw_free(certificate);
    sw_free(key);
    return tls;
}

static void echo(void *arg, struct sw_http_incoming *r)
{
    (void)arg;
    w.requests++;
    if (strlen(w.order) + strlen(r->path) < sizeof(w.order)) {
        strncat(w.order, r->path, sizeof(w.order) - 1 - strlen(w.order));
    }
    assert_memory_equal(r->peer, "127.0.0.1:", 10);
    if (strcmp(r->path, "/renew") == 0) {
        struct sw_tls_config *tls = serve_as("p384");
        sw_http_server_set_tls(w.server, tls);
        sw_tls_config_unref(tls);
    }
    if (strstr(r->path, "length")) {
        sw_http_answer_text(r, 200, sw_arena_printf(r->arena, "%s %zu", r->method, r->body_len));
    } else {
        sw_http_answer(r, &(struct sw_http_answer){.status = 200,
                                                   .content_type = "application/octet-stream",
                                                   .body = r->body,
                                                   .body_len = r->body_len});
    }
}

static void start_server(const char *certificate)
{
    struct sw_error error = {0};
    struct sw_http_server_options options = {
        .address = "127.0.0.1:0",
        .tls = certificate ? serve_as(certificate) : NULL,
        .body_limit_bytes = 2000000,
        .max_connections = w.max_connections,
        .patience_ms = w.patience_ms,
    };
    if (sw_http_server_open(w.loop, &options, echo, NULL, &no_log, &w.server, &error)) {
        fail_msg("%s", error.text);
    }
    sw_tls_config_unref(options.tls);
    w.server_port = sw_http_server_port(w.server);
    assert_int_not_equal(w.server_port, 0);
}

static void on_closed(void *arg)
{
    (void)arg;
    w.closed = 1;
}

static void stop_server(void)
{
    sw_http_server_close(w.server, on_closed, NULL);
    run_until(&w.closed, "the server to close");
}

TEST(nginx_asks_us_and_hands_on_what_we_say)
{
    static char body[3000000];
    struct reply r;
    loop_begin();
    start_server("dns");
    start_nginx();
    struct sw_http_client *client = connect_to(w.plain_port, NULL);
    for (size_t i = 0; i < sizeof(body); i++) {
        body[i] = (char)(i * 7);
    }
    for (size_t len = 1; len <= 1000000; len *= 10) {
        ask(client, &r,
            &(struct sw_http_request){
                .method = "POST", .target = "/back/x", .body = body, .body_len = len});
        assert_memory_equal(r.body.bytes, body, len);
        assert_whole(&r, 200, len);
    }
    ask(client, &r, &(struct sw_http_request){.method = "HEAD", .target = "/back/length"});
    assert_whole(&r, 200, 0);
    ask(client, &r, &(struct sw_http_request){.method = "DELETE", .target = "/back/length?x"});
    assert_string_equal(r.body.bytes, "DELETE 0\n");
    assert_whole(&r, 200, 9);
    assert_int_equal(w.requests, 9);
    ask(client, &r,
        &(struct sw_http_request){
            .method = "POST", .target = "/back/x", .body = body, .body_len = sizeof(body)});
    assert_int_equal(r.code, 0);
    assert_int_equal(r.status, 413);
    sw_buf_done(&r.body);
    sw_http_client_close(client);
    stop_server();
    loop_finish();
    child_end(&w.nginx);
}

/* ---- a server that is full ---- */

static struct sw_http_incoming *kept;

static void keep_first(void *arg, struct sw_http_incoming *r)
{
    if (kept) {
        echo(arg, r);
    } else {
        kept = r;
    }
    w.requests++;
}

static int connect_and_ask(void)
{
    static const char request[] = "GET /length HTTP/1.1\r\nHost: a\r\n\r\n";
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(w.server_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
    return fd;
}

TEST(an_answer_that_makes_room_lets_the_next_one_in)
{
    char text[512];
    struct sw_error error = {0};
    struct sw_http_server_options options = {.address = "127.0.0.1:0", .max_connections = 1};
    loop_begin();
    kept = NULL;
    assert_int_equal(
        sw_http_server_open(w.loop, &options, keep_first, NULL, &no_log, &w.server, &error), 0);
    w.server_port = sw_http_server_port(w.server);
    int first = connect_and_ask();
    run_until(&w.requests, "the first request");
    int second = connect_and_ask();
    for (int i = 0; i < 10; i++) { /* the loop has the connection, and nobody takes it */
        uv_run(sw_loop_uv(w.loop), UV_RUN_NOWAIT);
    }
    assert_int_equal(w.requests, 1);
    w.requests = 0;
    /* Now the first is idle, and goes while its answer is still being given. */
    sw_http_answer_text(kept, 200, "late");
    run_until(&w.requests, "the second request");
    assert_int_equal(sw_http_server_connections(w.server), 1);
    stop_server();
    ssize_t len = read(first, text, sizeof(text) - 1);
    assert_in_range(len, 1, sizeof(text) - 1);
    text[len] = '\0';
    assert_non_null(strstr(text, "\r\n\r\nlate\n"));
    close(first);
    close(second);
    loop_finish();
}

static void on_child_end(void *arg)
{
    *(int *)arg = 1;
}

/* Runs a Python program that talks to the server, whose port is its argument; its exit status. */
static int run_python(const char *program)
{
    struct child child;
    char port[8];
    int has_ended = 0;
    snprintf(port, sizeof(port), "%u", w.server_port);
    child_start(&child,
                (const char *[]){"python3", "-c", program, port, folder_path("ca.pem"), NULL});
    child_read(&child, w.loop, on_child_end, &has_ended);
    run_until(&has_ended, "Python");
    if (child.text.len > 0) {
        fprintf(stderr, "%s\n", child.text.bytes);
    }
    return child_wait(&child);
}

TEST(python_asks_us)
{
    static const char program[] =
        "import sys, http.client\n"
        "c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=10)\n"
        "def ask(method, path, want, body=None, status=200, **more):\n"
        "    c.request(method, path, body=body, **more)\n"
        "    r = c.getresponse()\n"
        "    got = r.read()\n"
        "    assert (r.status, got) == (status, want), (method, path, r.status, got[:100])\n"
        "    return r\n"
        "for n in range(300):\n"
        "    ask('POST', '/a%20b/length?q', b'POST %d\\n' % n, b'x' * n)\n"
        "sock = c.sock\n"
        "ask('PUT', '/x', b'abcde', iter([b'ab', b'c', b'de']), encode_chunked=True,\n"
        "    headers={'Transfer-Encoding': 'chunked'})\n"
        "ask('HEAD', '/length', b'')\n"
        "assert c.sock is sock\n"
        "ask('GET', '/length', b'GET 0\\n', headers={'Connection': 'close'})\n"
        "assert c.sock is None\n"
        "ask('POST', '/x', b'body too large\\n', b'x' * 3000000, status=413)\n"
        "c.close()\n"
        "c._http_vsn, c._http_vsn_str = 10, 'HTTP/1.0'\n"
        "r = ask('GET', '/length', b'GET 0\\n')\n"
        "assert r.getheader('Connection') == 'close'\n";
    loop_begin();
    start_server(NULL);
    assert_int_equal(run_python(program), 0);
    assert_int_equal(w.requests, 304);
    stop_server();
    loop_finish();
}

TEST(four_hundred_sockets_are_served_at_once)
{
    static const char program[] =
        "import sys, socket\n"
        "address = ('127.0.0.1', int(sys.argv[1]))\n"
        "socks = [socket.create_connection(address, 10) for _ in range(400)]\n"
        "for round in range(3):\n"
        "    for s in socks:\n"
        "        s.sendall(b'GET /length HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')\n"
        "    for s in socks:\n"
        "        got = b''\n"
        "        while not got.endswith(b'GET 0\\n'):\n"
        "            more = s.recv(4096)\n"
        "            assert more, got\n"
        "            got += more\n";
    loop_begin();
    w.max_connections = 400;
    start_server(NULL);
    assert_int_equal(run_python(program), 0);
    assert_int_equal(w.requests, 1200);
    stop_server();
    loop_finish();
}

TEST(accepting_waits_while_every_connection_has_a_request)
{
    static const char program[] =
        "import sys, socket\n"
        "address = ('127.0.0.1', int(sys.argv[1]))\n"
        "def receive(s, end):\n"
        "    got = b''\n"
        "    while not got.endswith(end):\n"
        "        more = s.recv(4096)\n"
        "        assert more, got\n"
        "        got += more\n"
        "busy = []\n"
        "for path in b'/a', b'/b':\n"
        "    s = socket.create_connection(address, 10)\n"
        "    s.sendall(b'POST ' + path + b' HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 3\\r\\n'\n"
        "              b'Expect: 100-continue\\r\\n\\r\\n')\n"
        "    receive(s, b'Continue\\r\\n\\r\\n')\n"
        "    busy.append(s)\n"
        "third = socket.create_connection(address, 10)\n"
        "third.sendall(b'POST /c HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 1\\r\\n\\r\\nc')\n"
        "busy[0].sendall(b'aaa')\n"
        "receive(busy[0], b'aaa')\n"
        "receive(third, b'c')\n"
        "assert busy[0].recv(1) == b''\n"
        "busy[1].sendall(b'bbb')\n"
        "receive(busy[1], b'bbb')\n";
    loop_begin();
    w.max_connections = 2;
    w.patience_ms = 10 * GUARD_MS;
    start_server(NULL);
    assert_int_equal(run_python(program), 0);
    assert_string_equal(w.order, "/a/c/b");
    stop_server();
    loop_finish();
}

TEST(a_burst_does_not_cut_off_its_beginning)
{
    static const char program[] =
        "import sys, socket\n"
        "address = ('127.0.0.1', int(sys.argv[1]))\n"
        "burst = [socket.create_connection(address, 10) for _ in range(20)]\n"
        "for s in burst:\n"
        "    s.sendall(b'GET /length HT')\n"
        "for s in burst:\n"
        "    s.sendall(b'TP/1.1\\r\\nHost: a\\r\\n\\r\\n')\n"
        "    got = b''\n"
        "    while not got.endswith(b'GET 0\\n'):\n"
        "        more = s.recv(4096)\n"
        "        assert more, got\n"
        "        got += more\n";
    loop_begin();
    w.max_connections = 3;
    w.patience_ms = 10 * GUARD_MS;
    start_server(NULL);
    assert_int_equal(run_python(program), 0);
    assert_int_equal(w.requests, 20);
    stop_server();
    loop_finish();
}

TEST(a_withheld_body_makes_room_in_the_end)
{
    static const char program[] =
        "import sys, socket\n"
        "address = ('127.0.0.1', int(sys.argv[1]))\n"
        "slow = [socket.create_connection(address, 10) for _ in range(2)]\n"
        "for s in slow:\n"
        "    s.sendall(b'POST / HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 3\\r\\n'\n"
        "              b'Expect: 100-continue\\r\\n\\r\\n')\n"
        "    assert s.recv(4096)\n"
        "honest = socket.create_connection(address, 10)\n"
        "honest.sendall(b'GET /length HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')\n"
        "got = honest.recv(4096)\n"
        "assert got.endswith(b'GET 0\\n'), got\n"
        "assert slow[0].recv(1) == b''\n";
    loop_begin();
    w.max_connections = 2;
    w.patience_ms = 50;
    start_server(NULL);
    assert_int_equal(run_python(program), 0);
    assert_int_equal(w.requests, 1);
    stop_server();
    loop_finish();
}

TEST(a_new_certificate_is_for_new_connections)
{
    static const char program[] =
        "import sys, ssl, socket\n"
        "def connect():\n"
        "    context = ssl.create_default_context(cafile=sys.argv[2])\n"
        "    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10)\n"
        "    return context.wrap_socket(s, server_hostname='server.test')\n"
        "def ask(s, path, want):\n"
        "    s.sendall(b'GET ' + path + b' HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')\n"
        "    got = b''\n"
        "    while b'\\r\\n\\r\\n' not in got or not got.endswith(want):\n"
        "        more = s.recv(4096)\n"
        "        assert more, got\n"
        "        got += more\n"
        "def key(s):\n"
        "    return s.getpeercert(True)\n"
        "old = connect()\n"
        "ask(old, b'/length', b'GET 0\\n')\n"
        "ask(old, b'/renew', b'')\n"
        "new = connect()\n"
        "assert key(old) != key(new)\n"
        "ask(old, b'/length', b'GET 0\\n')\n"
        "ask(new, b'/length', b'GET 0\\n')\n";
    loop_begin();
    start_server("dns");
    assert_int_equal(run_python(program), 0);
    assert_int_equal(w.requests, 4);
    stop_server();
    loop_finish();
}

TEST(what_is_typed_into_openssl_is_answered)
{
    struct child child;
    char address[32];
    int has_ended = 0;
    loop_begin();
    start_server("rsa");
    snprintf(address, sizeof(address), "127.0.0.1:%u", w.server_port);
    child_start(&child,
                (const char *[]){"openssl", "s_client", "-quiet", "-verify_return_error",
                                 "-servername", "server.test", "-verify_hostname", "server.test",
                                 "-CAfile", folder_path("ca.pem"), "-connect", address, NULL});
    child_write(&child, "POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                        "GET /length HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    child_read(&child, w.loop, on_child_end, &has_ended);
    run_until(&has_ended, "openssl");
    const char *first = strstr(child.text.bytes, "HTTP/1.1 200 OK\r\n");
    assert_non_null(first);
    const char *second = strstr(first, "\r\n\r\nPOST 3\nHTTP/1.1 200 OK\r\n");
    assert_non_null(second);
    assert_non_null(strstr(second, "Connection: close\r\n\r\nGET 0\n"));
    assert_int_equal(child_wait(&child), 0);
    stop_server();
    loop_finish();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("http", nginx_answers_us),
        CASE("http", nginx_answers_us_over_tls),
        CASE("http", a_refusal_in_the_middle_of_our_body_is_read),
        CASE("http", a_slow_answer_is_waited_for_within_its_deadlines),
        CASE("http", no_request_is_lost_while_nginx_reloads),
        CASE("http", a_port_where_nobody_listens_is_named),
        CASE("http", credentials_are_replaced_between_two_requests),
        CASE("http", nginx_asks_us_and_hands_on_what_we_say),
        CASE("http", an_answer_that_makes_room_lets_the_next_one_in),
        CASE("http", python_asks_us),
        CASE("http", four_hundred_sockets_are_served_at_once),
        CASE("http", accepting_waits_while_every_connection_has_a_request),
        CASE("http", a_burst_does_not_cut_off_its_beginning),
        CASE("http", a_withheld_body_makes_room_in_the_end),
        CASE("http", a_new_certificate_is_for_new_connections),
        CASE("http", what_is_typed_into_openssl_is_answered),
    };
    signal(SIGPIPE, SIG_IGN); /* as main does: libuv writes with it */
    folder_make();
    make_www();
    int rc = RUN(tests);
    folder_remove();
    return rc;
}
