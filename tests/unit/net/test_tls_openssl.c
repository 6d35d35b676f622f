/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over TCP with openssl at the other end, as client and as server: data, resumption, ALPN, SNI,
 * the two ways to end, bulk with back pressure. Which certificates are accepted: test_tls_verify.c.
 */
#include "net/tls.h"

#include <errno.h>
#include <mbedtls/ssl.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "foreign.h"
#include "net/stream.h"
#include "net/tcp.h"
#include "test.h"

enum { LINE_MAX_LEN = 64, BULK = 4 * 1000 * 1000 };

#if defined(MBEDTLS_SSL_PROTO_TLS1_3)
static const char *const versions[] = {"-tls1_2", "-tls1_3"};
#else
static const char *const versions[] = {"-tls1_2"};
#endif

/* ---- our server: for one connection, whose first line says what it does ---- */

static struct {
    struct sw_loop *loop;
    struct sw_tls_config *config;
    struct sw_tcp_listener *listener;
    struct sw_stream *stream;
    char line[LINE_MAX_LEN];
    size_t line_len;
    size_t received;
    uint32_t sum; /* of what was received after the line */
    size_t to_send;
    unsigned drains;
    size_t most_pending;
    bool has_ended;
    int end_code;
    struct sw_error error;
    unsigned ready_calls;
} s;

static char bulk_byte(size_t at)
{
    return (char)(at * 31 + at / 977);
}

static void send_bulk(void)
{
    char piece[5000];
    while (s.to_send > 0) {
        size_t len = SW_MIN(s.to_send, sizeof(piece));
        for (size_t i = 0; i < len; i++) {
            piece[i] = bulk_byte(BULK - s.to_send + i);
        }
        int rc = sw_stream_write(s.stream, piece, len);
        s.most_pending = SW_MAX(s.most_pending, sw_stream_pending(s.stream));
        if (rc == -ENOBUFS) {
            return;
        }
        assert_int_equal(rc, 0);
        s.to_send -= len;
    }
    sw_stream_finish(s.stream);
    sw_stream_close(s.stream);
    s.stream = NULL;
}

static void obey(void)
{
    s.line[s.line_len] = '\0';
    if (strcmp(s.line, "send") == 0) {
        s.to_send = BULK;
        send_bulk();
    } else if (strcmp(s.line, "hang up") == 0) {
        sw_stream_close(s.stream); /* without close_notify */
        s.stream = NULL;
    } else if (strcmp(s.line, "receive")) {
        char answer[LINE_MAX_LEN + 8];
        snprintf(answer, sizeof(answer), "you: %s\n", s.line);
        sw_stream_write(s.stream, answer, strlen(answer));
        sw_stream_finish(s.stream);
        sw_stream_close(s.stream);
        s.stream = NULL;
    }
}

static void server_read(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    bool had_line = memchr(s.line, '\n', s.line_len);
    for (size_t i = 0; i < len; i++) {
        if (had_line) {
            s.sum = s.sum * 33 + (unsigned char)bytes[i];
            s.received++;
        } else if (bytes[i] == '\n') {
            had_line = true;
            obey();
            s.line[s.line_len++] = '\n';
            if (!s.stream) {
                return;
            }
        } else {
            assert_true(s.line_len + 2 < LINE_MAX_LEN);
            s.line[s.line_len++] = bytes[i];
        }
    }
}

static void server_end(void *arg, int code)
{
    (void)arg;
    s.has_ended = true;
    s.end_code = code;
    sw_stream_close(s.stream);
    s.stream = NULL;
}

static void server_drain(void *arg)
{
    (void)arg;
    s.drains++;
    send_bulk();
}

static const struct sw_stream_events server_events = {server_read, server_end, server_drain};

static void server_ready(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    (void)arg;
    s.ready_calls++;
    s.stream = stream;
    if (stream) {
        sw_stream_start(stream, &server_events, NULL);
    } else {
        s.error = *error;
    }
}

static void accepted(void *arg, struct sw_stream *stream)
{
    (void)arg;
    struct sw_tls_handshake *handshake;
    assert_int_equal(sw_tls_accept(s.loop, stream, s.config, 0, server_ready, NULL, &handshake), 0);
    sw_tcp_listener_close(s.listener);
}

/* Opens the server on a loop of its own; what runs it comes next. */
static uint16_t server_open(size_t write_limit)
{
    struct sw_tls_config *config = s.config;
    memset(&s, 0, sizeof(s));
    s.config = config;
    assert_int_equal(sw_loop_open(&s.loop), 0);
    struct sw_error error;
    if (sw_tcp_listen(s.loop, "127.0.0.1:0", write_limit, accepted, NULL, &s.listener, &error)) {
        fail_msg("%s", error.text);
    }
    return sw_tcp_listener_port(s.listener);
}

static void make_server_config(const char *name)
{
    char pem[64], key[64];
    snprintf(pem, sizeof(pem), "%s.pem", name);
    snprintf(key, sizeof(key), "%s.key", name);
    SW_AUTO(char, sw_free) certificate_pem = folder_read(pem);
    SW_AUTO(char, sw_free) key_pem = folder_read(key);
    struct sw_error error;
    if (sw_tls_server_config_new(
            &(struct sw_tls_server_options){.certificate_pem = certificate_pem, .key_pem = key_pem},
            &s.config, &error)) {
        fail_msg("%s", error.text);
    }
}

/* Runs `openssl s_client` against the server; input is what it sends. Its output is in child->text
 * until child_wait. */
static void run_client(struct child *child, uint16_t port, const char *input,
                       const char *const *more)
{
    char address[32];
    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port);
    const char *argv[32] = {"openssl",
                            "s_client",
                            "-connect",
                            address,
                            "-CAfile",
                            folder_path("ca.pem"),
                            "-verify_return_error",
                            "-verify_hostname",
                            "server.test",
                            "-servername",
                            "server.test",
                            "-ign_eof"};
    for (size_t i = 0; more[i]; i++) {
        argv[12 + i] = more[i];
    }
    child_start(child, argv);
    child_write(child, input);
    child_close_input(child);
    child_read(child, s.loop, NULL, NULL);
    sw_loop_run(s.loop);
    assert_int_equal(sw_loop_close(s.loop), 0);
    assert_int_equal(s.ready_calls, 1);
}

#define MORE(...) ((const char *const[]){__VA_ARGS__, NULL})

static void wants(const struct child *child, const char *text)
{
    if (!strstr(child->text.bytes, text)) {
        fail_msg("wanted \"%s\", got: %s", text, child->text.bytes);
    }
}

/* ---- openssl as client ---- */

TEST(serves_openssl)
{
    static const char *const certificates[] = {"dns", "rsa", "p384"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(certificates); i++) {
        for (size_t v = 0; v < SW_ARRAY_SIZE(versions); v++) {
            make_server_config(certificates[i]);
            struct child child;
            run_client(&child, server_open(0), "it is me\n", MORE(versions[v]));
            wants(&child, "you: it is me\n");
            wants(&child, "Verification: OK");
            wants(&child, v == 0 ? "CHACHA20" : "Cipher is TLS_");
            assert_int_equal(child_wait(&child), 0);
            s.config = sw_tls_config_unref(s.config);
        }
    }
}

TEST(speaks_http11_alone)
{
    make_server_config("dns");
    struct child child;
    run_client(&child, server_open(0), "x\n", MORE("-alpn", "h2,http/1.1"));
    wants(&child, "ALPN protocol: http/1.1");
    child_wait(&child);
    run_client(&child, server_open(0), "x\n", MORE("-alpn", "h2"));
    assert_non_null(s.error.text[0] ? s.error.text : NULL);
    wants(&child, "no application protocol");
    assert_int_not_equal(child_wait(&child), 0);
    s.config = sw_tls_config_unref(s.config);
}

TEST(refuses_old_versions_and_ciphers)
{
    make_server_config("dns");
    struct child child;
    run_client(&child, server_open(0), "x\n", MORE("-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"));
    assert_int_equal(s.error.code, SW_E_TLS);
    assert_int_not_equal(child_wait(&child), 0);
    run_client(&child, server_open(0), "x\n", MORE("-tls1_2", "-cipher", "AES128-SHA"));
    assert_int_equal(s.error.code, SW_E_TLS);
    assert_int_not_equal(child_wait(&child), 0);
    s.config = sw_tls_config_unref(s.config);
}

TEST(lets_clients_resume)
{
    for (size_t v = 0; v < SW_ARRAY_SIZE(versions); v++) {
        make_server_config("dns");
        const char *session = folder_path("session");
        struct child child;
        run_client(&child, server_open(0), "first\n", MORE(versions[v], "-sess_out", session));
        wants(&child, "New, TLS");
        child_wait(&child);
        run_client(&child, server_open(0), "second\n", MORE(versions[v], "-sess_in", session));
        wants(&child, "Reused, TLS");
        wants(&child, "you: second\n");
        child_wait(&child);
        /* Another configuration has other keys: a full handshake, no failure. */
        s.config = sw_tls_config_unref(s.config);
        make_server_config("dns");
        run_client(&child, server_open(0), "third\n", MORE(versions[v], "-sess_in", session));
        wants(&child, "New, TLS");
        wants(&child, "you: third\n");
        child_wait(&child);
        s.config = sw_tls_config_unref(s.config);
    }
}

TEST(sends_much_to_a_slow_reader)
{
    for (size_t v = 0; v < SW_ARRAY_SIZE(versions); v++) {
        make_server_config("dns");
        struct child child;
        run_client(&child, server_open(64 * 1024), "send\n", MORE(versions[v], "-quiet"));
        assert_true(s.drains > 5);
        assert_true(s.most_pending <= 64 * 1024);
        /* Words about the certificates come first, on standard error. */
        assert_true(child.text.len > BULK);
        const char *bytes = child.text.bytes + child.text.len - BULK;
        for (size_t i = 0; i < BULK; i++) {
            if (bytes[i] != bulk_byte(i)) {
                fail_msg("byte %zu is wrong", i);
            }
        }
        child_wait(&child);
        s.config = sw_tls_config_unref(s.config);
    }
}

TEST(receives_much)
{
    static char input[8 + BULK + 1] = "receive\n";
    uint32_t sum = 0;
    for (size_t i = 0; i < BULK; i++) {
        input[8 + i] = bulk_byte(i);
        sum = sum * 33 + (unsigned char)bulk_byte(i);
    }
    test_write_file(folder_path("bulk"), input, 8 + BULK);
    for (size_t v = 0; v < SW_ARRAY_SIZE(versions); v++) {
        make_server_config("dns");
        char command[256];
        snprintf(
            command, sizeof(command),
            "exec openssl s_client -connect 127.0.0.1:%u -quiet -no_ign_eof -nocommands %s <%s",
            (unsigned)server_open(0), versions[v], folder_path("bulk"));
        struct child child;
        child_start(&child, MORE("sh", "-c", command));
        child_read(&child, s.loop, NULL, NULL);
        sw_loop_run(s.loop);
        assert_int_equal(sw_loop_close(s.loop), 0);
        assert_int_equal(s.received, BULK);
        assert_int_equal(s.sum, sum);
        assert_true(s.has_ended && s.end_code == 0);
        child_wait(&child);
        s.config = sw_tls_config_unref(s.config);
    }
}

TEST(hangs_up_without_a_word)
{
    make_server_config("dns");
    struct child child;
    run_client(&child, server_open(0), "hang up\n", MORE("-tls1_2"));
    assert_int_equal(s.ready_calls, 1);
    wants(&child, "unexpected eof");
    child_wait(&child);
    s.config = sw_tls_config_unref(s.config);
}

/* ---- openssl as server ---- */

static struct {
    struct sw_loop *loop;
    struct sw_tls_config *config;
    const char *name;
    struct child *server;
    const char *request; /* written once it is connected; NULL: nothing */
    const char *input;   /* that the server is made to send then; NULL: nothing */
    const char *then;    /* and when that has come; a command stands at the beginning of a read */
    bool kills;          /* the server, when that has come */
    struct sw_stream *stream;
    struct sw_buf got;
    size_t want; /* then it closes */
    bool has_ended;
    int end_code;
    struct sw_error error;
} c;

static void client_read(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    sw_buf_append(&c.got, bytes, len);
    if (c.want && c.got.len >= c.want) {
        sw_stream_finish(c.stream);
        sw_stream_close(c.stream);
        c.stream = NULL;
    } else if (c.then) {
        child_write(c.server, c.then);
        c.then = NULL;
    } else if (c.kills) {
        kill(c.server->pid, SIGKILL);
        c.kills = false;
    }
}

static void client_end(void *arg, int code)
{
    (void)arg;
    c.has_ended = true;
    c.end_code = code;
    sw_stream_close(c.stream);
    c.stream = NULL;
}

static const struct sw_stream_events client_events = {client_read, client_end, NULL};

static void client_ready(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    (void)arg;
    if (!stream) {
        c.error = *error;
        return;
    }
    c.stream = stream;
    sw_stream_start(stream, &client_events, NULL);
    if (c.request) {
        assert_int_equal(sw_stream_write(stream, c.request, strlen(c.request)), 0);
    }
    if (c.input) {
        child_write(c.server, c.input);
    }
}

static void connected(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    (void)arg;
    struct sw_tls_handshake *handshake;
    if (!stream) {
        fail_msg("%s", error->text);
    }
    assert_int_equal(
        sw_tls_connect(c.loop, stream, c.config, c.name, 0, client_ready, NULL, &handshake), 0);
}

static void run_connection(uint16_t port)
{
    struct sw_tcp_connect *connect;
    struct sw_tcp_options options = {.host = "127.0.0.1", .port = port};
    c.stream = NULL;
    c.has_ended = false;
    c.error = (struct sw_error){0};
    sw_buf_init(&c.got, SIZE_MAX);
    assert_int_equal(sw_loop_open(&c.loop), 0);
    assert_int_equal(sw_tcp_connect(c.loop, &options, connected, NULL, &connect), 0);
    sw_loop_run(c.loop);
    assert_int_equal(sw_loop_close(c.loop), 0);
    if (c.error.code) {
        fail_msg("%s", c.error.text);
    }
}

static uint16_t start_server(struct child *server, const char *version, const char *mode)
{
    memset(&c, 0, sizeof(c));
    c.server = server;
    c.name = "server.test";
    SW_AUTO(char, sw_free) ca = folder_read("ca.pem");
    struct sw_error error;
    assert_int_equal(
        sw_tls_client_config_new(&(struct sw_tls_client_options){.ca_pem = ca}, &c.config, &error),
        0);
    const char *pem = folder_path("both.pem");
    const char *key = folder_path("both.key");
    return child_openssl_server(server,
                                MORE("-cert", pem, "-key", key, version, mode, "-servername",
                                     "server.test", "-cert2", pem, "-key2", key));
}

static void stop_server(struct child *server)
{
    child_end(server);
    sw_tls_config_unref(c.config);
}

static size_t count(const char *text, const char *what)
{
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) {
        found++;
    }
    return found;
}

TEST(resumes_at_openssl)
{
    for (size_t v = 0; v < SW_ARRAY_SIZE(versions); v++) {
        struct child server;
        uint16_t port = start_server(&server, versions[v], "-4");
        c.input = "hello\n";
        c.want = 6;
        for (int i = 0; i < 3; i++) {
            run_connection(port);
            assert_string_equal(c.got.bytes, "hello\n");
            sw_buf_done(&c.got);
            /* It tells of the connection before it is ready for the next. */
            for (int told = 0; told <= i; told++) {
                child_expect(&server, "CIPHER is");
            }
        }
        child_close_input(&server);
        child_expect(&server, "Reused session-id");
        stop_server(&server);
    }
}

TEST(sends_the_name_unless_it_is_an_address)
{
    struct child server;
    uint16_t port = start_server(&server, "-tls1_2", "-4");
    c.input = "hello\n";
    c.want = 6;
    run_connection(port);
    sw_buf_done(&c.got);
    child_expect(&server, "Hostname in TLS extension: \"server.test\"");
    c.name = "127.0.0.1";
    run_connection(port);
    sw_buf_done(&c.got);
    child_expect(&server, "CIPHER is");
    assert_int_equal(count(server.text.bytes, "Hostname in TLS extension"), 1);
    stop_server(&server);
}

TEST(tells_an_end_from_a_loss)
{
    for (size_t v = 0; v < SW_ARRAY_SIZE(versions); v++) {
        struct child server;
        uint16_t port = start_server(&server, versions[v], "-rev");
        c.request = "stressed\nCLOSE\n"; /* the second line makes it end in order */
        run_connection(port);
        assert_string_equal(c.got.bytes, "desserts\n");
        assert_true(c.has_ended);
        assert_int_equal(c.end_code, 0);
        sw_buf_done(&c.got);
        stop_server(&server);

        port = start_server(&server, versions[v], "-4");
        c.input = "hello\n";
        c.kills = true;
        run_connection(port);
        assert_true(c.has_ended);
        assert_int_equal(c.end_code, SW_E_TRUNCATED);
        sw_buf_done(&c.got);
        stop_server(&server);
    }
}

/* A server of TLS 1.2 may ask for another handshake. We decline; openssl then gives up. */
TEST(declines_renegotiation)
{
    struct child server;
    uint16_t port = start_server(&server, "-tls1_2", "-4");
    c.input = "hello\n";
    c.then = "r\n";
    run_connection(port);
    assert_string_equal(c.got.bytes, "hello\n");
    assert_true(c.has_ended);
    assert_int_equal(c.end_code, SW_E_TLS);
    child_expect(&server, "SSL_do_handshake");
    sw_buf_done(&c.got);
    stop_server(&server);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("tls and openssl", serves_openssl),
        CASE("tls and openssl", speaks_http11_alone),
        CASE("tls and openssl", refuses_old_versions_and_ciphers),
        CASE("tls and openssl", lets_clients_resume),
        CASE("tls and openssl", sends_much_to_a_slow_reader),
        CASE("tls and openssl", receives_much),
        CASE("tls and openssl", hangs_up_without_a_word),
        CASE("tls and openssl", resumes_at_openssl),
        CASE("tls and openssl", sends_the_name_unless_it_is_an_address),
        CASE("tls and openssl", tells_an_end_from_a_loss),
        CASE("tls and openssl", declines_renegotiation),
    };
    folder_make();
    int rc = RUN(tests);
    folder_remove();
    return rc;
}
