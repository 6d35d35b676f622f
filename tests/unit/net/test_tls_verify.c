/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our TLS client against `openssl s_server` with every kind of certificate: which are accepted, and
 * what is said of the others.
 */
#include "net/tls.h"

#include <mbedtls/ssl.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "foreign.h"
#include "net/stream.h"
#include "net/tcp.h"
#include "test.h"

/* ---- our client ---- */

struct client {
    struct sw_loop *loop;
    struct sw_tls_config *config;
    const char *name;
    const char *request; /* written once it is connected */
    size_t want;         /* so many bytes are waited for; then it closes */
    struct sw_stream *stream;
    struct sw_buf got;
    int ready_calls;
    bool has_ended;
    int end_code;
    struct sw_error error;
};

static void on_read(void *arg, const char *bytes, size_t len)
{
    struct client *client = arg;
    assert_true(len > 0);
    sw_buf_append(&client->got, bytes, len);
    if (client->want && client->got.len >= client->want) {
        sw_stream_finish(client->stream);
        sw_stream_close(client->stream);
        client->stream = NULL;
    }
}

static void on_end(void *arg, int code)
{
    struct client *client = arg;
    assert_false(client->has_ended);
    client->has_ended = true;
    client->end_code = code;
    sw_stream_close(client->stream);
    client->stream = NULL;
}

static const struct sw_stream_events client_events = {.on_read = on_read, .on_end = on_end};

static void on_ready(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    struct client *client = arg;
    client->ready_calls++;
    if (!stream) {
        client->error = *error;
        return;
    }
    client->stream = stream;
    sw_stream_start(stream, &client_events, client);
    if (client->request) {
        assert_int_equal(sw_stream_write(stream, client->request, strlen(client->request)), 0);
    }
}

static void on_connected(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    struct client *client = arg;
    struct sw_tls_handshake *handshake;
    if (!stream) {
        fail_msg("no connection: %s", error->text);
    }
    assert_int_equal(sw_tls_connect(client->loop, stream, client->config, client->name, 0, on_ready,
                                    client, &handshake),
                     0);
}

/* Runs one connection from beginning to end. */
static void client_run(struct client *client, uint16_t port)
{
    struct sw_tcp_connect *connect;
    sw_buf_init(&client->got, SIZE_MAX);
    assert_int_equal(sw_loop_open(&client->loop), 0);
    assert_int_equal(sw_tcp_connect(client->loop,
                                    &(struct sw_tcp_options){.host = "127.0.0.1", .port = port},
                                    on_connected, client, &connect),
                     0);
    sw_loop_run(client->loop);
    assert_int_equal(sw_loop_close(client->loop), 0);
    assert_int_equal(client->ready_calls, 1);
}

static struct sw_tls_config *client_config(const char *ca, const char *certificate, const char *key)
{
    SW_AUTO(char, sw_free) ca_pem = ca ? folder_read(ca) : NULL;
    SW_AUTO(char, sw_free) certificate_pem = certificate ? folder_read(certificate) : NULL;
    SW_AUTO(char, sw_free) key_pem = key ? folder_read(key) : NULL;
    struct sw_tls_config *config;
    struct sw_error error;
    int rc =
        sw_tls_client_config_new(&(struct sw_tls_client_options){.ca_pem = ca_pem,
                                                                 .certificate_pem = certificate_pem,
                                                                 .key_pem = key_pem,
                                                                 .insecure_skip_verify = !ca},
                                 &config, &error);
    if (rc) {
        fail_msg("%s", error.text);
    }
    return config;
}

/* What comes of one connection to an s_server that sends each line back reversed. refusal: a part
 * of the message that is wanted; NULL: it must be accepted. */
struct attempt {
    const char *certificate; /* of the server, without .pem; its chain in the same file */
    const char *key;         /* NULL: as certificate */
    const char *ca;          /* of our client; NULL: ca.pem */
    const char *name;        /* that it expects; NULL: server.test */
    bool is_insecure;        /* it does not verify */
    const char *refusal;
    const char *second_refusal; /* another part of the message */
    const char *options[6];     /* more for s_server */
    const char *client_certificate;
};

static void try_it(const struct attempt *attempt)
{
    char certificate[64], key[64];
    snprintf(certificate, sizeof(certificate), "%s.pem", attempt->certificate);
    snprintf(key, sizeof(key), "%s.key", attempt->key ? attempt->key : attempt->certificate);
    const char *options[16] = {"-rev",           "-cert",       folder_path(certificate), "-key",
                               folder_path(key), "-cert_chain", folder_path(certificate)};
    for (size_t i = 0; i < SW_ARRAY_SIZE(attempt->options) && attempt->options[i]; i++) {
        options[7 + i] = attempt->options[i];
    }
    struct child server;
    uint16_t port = child_openssl_server(&server, options);
    char client_pem[64] = "", client_key[64] = "";
    if (attempt->client_certificate) {
        snprintf(client_pem, sizeof(client_pem), "%s.pem", attempt->client_certificate);
        snprintf(client_key, sizeof(client_key), "%s.key", attempt->client_certificate);
    }
    struct client client = {
        .config = client_config(attempt->is_insecure ? NULL
                                : attempt->ca        ? attempt->ca
                                                     : "ca.pem",
                                *client_pem ? client_pem : NULL, *client_key ? client_key : NULL),
        .name = attempt->name ? attempt->name : "server.test",
        .request = "stressed\n",
        .want = 9,
    };
    client_run(&client, port);
    if (attempt->refusal) {
        if (client.error.code == 0 || !strstr(client.error.text, attempt->refusal) ||
            (attempt->second_refusal && !strstr(client.error.text, attempt->second_refusal))) {
            fail_msg("%s for %s: wanted \"%s\", got %d \"%s\"", attempt->certificate, client.name,
                     attempt->refusal, client.error.code, client.error.text);
        }
    } else {
        if (client.error.code) {
            fail_msg("%s for %s: %s", attempt->certificate, client.name, client.error.text);
        }
        assert_string_equal(client.got.bytes, "desserts\n");
    }
    sw_buf_done(&client.got);
    sw_tls_config_unref(client.config);
    child_end(&server);
}

#define TRY(...) try_it(&(struct attempt){__VA_ARGS__})

TEST(accepts_the_right_name)
{
    TRY(.certificate = "dns");
    TRY(.certificate = "dns", .name = "SERVER.Test");
    TRY(.certificate = "dns", .name = "server.test.");
    TRY(.certificate = "dns", .name = "a.wild.test");
    TRY(.certificate = "both");
}

TEST(accepts_an_address_among_the_names)
{
    TRY(.certificate = "ip", .name = "127.0.0.1");
    TRY(.certificate = "ip", .name = "::1");
    TRY(.certificate = "both", .name = "127.0.0.1");
}

TEST(refuses_another_name_and_says_what_it_is_for)
{
    TRY(.certificate = "dns", .name = "other.test",
        .refusal = "certificate is for server.test, *.wild.test; not for other.test");
    TRY(.certificate = "dns", .name = "127.0.0.1",
        .refusal = "certificate is for server.test, *.wild.test; not for 127.0.0.1");
    TRY(.certificate = "ip", .name = "127.0.0.2",
        .refusal = "certificate is for 127.0.0.1, ::1; not for 127.0.0.2");
    TRY(.certificate = "dns", .name = "wild.test", .refusal = "not for wild.test");
    TRY(.certificate = "dns", .name = "a.b.wild.test", .refusal = "not for a.b.wild.test");
}

TEST(does_not_look_at_the_common_name)
{
    TRY(.certificate = "cn", .refusal = "no subject alternative name");
}

TEST(refuses_a_foreign_ca_and_names_the_issuer)
{
    TRY(.certificate = "dns", .ca = "stranger.pem",
        .refusal = "not trusted: its issuer O=slipway, CN=test CA is not among the CAs");
    TRY(.certificate = "dns", .ca = "namesake.pem", .refusal = "with another key");
    TRY(.certificate = "self", .refusal = "it is self-signed by CN=self");
    TRY(.certificate = "self", .ca = "self.pem");
}

TEST(refuses_dates_and_says_which)
{
    TRY(.certificate = "expired", .refusal = "certificate expired on 2021-01-01T00:00:00Z");
    TRY(.certificate = "future", .refusal = "certificate is not valid before 2090-01-01T00:00:00Z");
}

TEST(tells_all_that_is_wrong)
{
    TRY(.certificate = "expired", .ca = "stranger.pem", .name = "x.test", .refusal = "expired on",
        .second_refusal = "not for x.test");
    TRY(.certificate = "expired", .ca = "stranger.pem", .name = "x.test", .refusal = "not trusted");
}

TEST(follows_a_chain)
{
    TRY(.certificate = "chain", .key = "end");
    TRY(.certificate = "end", .refusal = "its issuer CN=intermediate is not among the CAs");
    TRY(.certificate = "end", .ca = "middle.pem");
}

TEST(refuses_weak_and_misused_certificates)
{
    TRY(.certificate = "sha1", .options = {"-cipher", "DEFAULT:@SECLEVEL=0"}, .refusal = "SHA-1");
    TRY(.certificate = "weak", .options = {"-cipher", "DEFAULT:@SECLEVEL=0"},
        .refusal = "too short");
    TRY(.certificate = "client", .refusal = "extended key usage");
}

TEST(accepts_every_supported_key)
{
    TRY(.certificate = "rsa");
    TRY(.certificate = "rsa", .options = {"-tls1_2"});
    TRY(.certificate = "p384");
}

TEST(names_ed25519)
{
    TRY(.certificate = "ed25519", .refusal = "Ed25519");
    TRY(.certificate = "edsigned", .refusal = "Ed25519");
    TRY(.certificate = "edsigned", .ca = "ca-and-edca.pem", .refusal = "Ed25519");
}

TEST(skips_verification_only_if_told)
{
    TRY(.certificate = "self", .is_insecure = true, .name = "whatever.test");
    TRY(.certificate = "expired", .is_insecure = true);
}

TEST(shows_its_certificate)
{
    const char *ca = folder_path("ca.pem");
    TRY(.certificate = "dns", .options = {"-Verify", "2", "-CAfile", ca, "-verify_return_error"},
        .client_certificate = "client");
    TRY(.certificate = "dns",
        .options = {"-Verify", "2", "-CAfile", ca, "-verify_return_error", "-tls1_2"},
        .refusal = "the server demands a client certificate");
    TRY(.certificate = "dns",
        .options = {"-Verify", "2", "-CAfile", ca, "-verify_return_error", "-tls1_2"},
        .client_certificate = "badclient",
        .refusal = "does not accept our certificate: unknown CA");
}

TEST(tls13_only)
{
#if defined(MBEDTLS_SSL_PROTO_TLS1_3)
    TRY(.certificate = "dns", .options = {"-tls1_3"});
#else
    TRY(.certificate = "dns", .options = {"-tls1_3"}, .refusal = "it may demand TLS 1.3",
        .second_refusal = "the newest that mbedTLS 2.28");
#endif
}

TEST(old_tls_is_refused)
{
    TRY(.certificate = "dns", .options = {"-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"},
        .refusal = "TLS");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("tls client", accepts_the_right_name),
        CASE("tls client", accepts_an_address_among_the_names),
        CASE("tls client", refuses_another_name_and_says_what_it_is_for),
        CASE("tls client", does_not_look_at_the_common_name),
        CASE("tls client", refuses_a_foreign_ca_and_names_the_issuer),
        CASE("tls client", refuses_dates_and_says_which),
        CASE("tls client", tells_all_that_is_wrong),
        CASE("tls client", follows_a_chain),
        CASE("tls client", refuses_weak_and_misused_certificates),
        CASE("tls client", accepts_every_supported_key),
        CASE("tls client", names_ed25519),
        CASE("tls client", skips_verification_only_if_told),
        CASE("tls client", shows_its_certificate),
        CASE("tls client", tls13_only),
        CASE("tls client", old_tls_is_refused),
    };
    folder_make();
    int rc = RUN(tests);
    folder_remove();
    return rc;
}
