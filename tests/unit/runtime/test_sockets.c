/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of the process, over real connections on 127.0.0.1: webhook with certificates that
 * come late and change, probes and metrics.
 */
#include <slipway/admission.h>
#include <slipway/watch.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/metrics.h"
#include "base/util.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "net/tls_issue.h"
#include "runtime/endpoints.h"
#include "runtime/health.h"
#include "runtime/webhook.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "../memory.h"
#include "../test.h"
#include "fixture.h"

/* ---- a client that waits ---- */

struct asked {
    struct sw_loop *loop;
    struct sw_http_client *client;
    int status, code;
    char body[65536];
    char connection[32], authenticate[64];
    bool is_done;
};

static void on_head(void *arg, const struct sw_http_head *head)
{
    struct asked *a = arg;
    const char *connection = sw_http_field_get(&head->fields, "Connection");

    const char *authenticate = sw_http_field_get(&head->fields, "WWW-Authenticate");

    a->status = head->status;
    snprintf(a->connection, sizeof(a->connection), "%s", connection ? connection : "");
    snprintf(a->authenticate, sizeof(a->authenticate), "%s", authenticate ? authenticate : "");
}

static void on_body(void *arg, const char *bytes, size_t len)
{
    struct asked *a = arg;

    strncat(a->body, bytes, len);
}

static void on_end(void *arg, int code, const struct sw_error *error)
{
    struct asked *a = arg;

    (void)error;
    a->code = code;
    a->is_done = true;
}

/* Each step of a test is a function that the loop calls when the one before has come true. */
struct script {
    struct sw_loop *loop;
    struct sw_metrics *metrics;
    struct sw_log log;
    struct sw_timer tick;
    size_t at;
    bool (*const *steps)(struct script *s); /* true: done, on to the next; NULL: the end */
    struct asked asked;
    struct sw_webhook *webhook;
    struct sw_endpoints *endpoints;
    struct sw_health health;
    struct fake_transport *transport;
    struct sw_core *core;
    struct made_up made_up;
    char *folder;
    struct crowd *crowd;
    const char *authorization; /* of what is asked; NULL: none */
    struct asked *reviewers;
    struct fake_log *fake_log;
};

static void finish(struct script *s);

static void tick(struct sw_timer *timer)
{
    struct script *s = container_of(timer, struct script, tick);

    if (s->steps[s->at](s))
        s->at++;
    if (s->steps[s->at])
        sw_timer_start(timer, 2);
    else
        finish(s);
}

static void close_client(struct script *s)
{
    sw_http_client_close(s->asked.client);
    s->asked.client = NULL;
}

static void finish(struct script *s)
{
    close_client(s);
    sw_webhook_close(s->webhook);
    sw_endpoints_close(s->endpoints);
    s->core = sw_core_free(s->core);
}

static void run(struct script *s, bool (*const *steps)(struct script *s))
{
    s->steps = steps;
    assert_int_equal(sw_loop_open(&s->loop), 0);
    s->metrics = sw_metrics_new();
    s->folder = test_folder_new();
    sw_timer_init(&s->tick, s->loop, tick);
    sw_timer_start(&s->tick, 0);
    sw_loop_run(s->loop);
    if (s->transport)
        fake_transport_free(s->transport);
    sw_metrics_free(s->metrics);
    test_folder_done(s->folder);
    if (s->fake_log)
        fake_log_done(s->fake_log);
    assert_int_equal(sw_loop_close(s->loop), 0);
}

/* Trusts the certificate of that name; "": any; NULL: plain. */
static void connect_to(struct script *s, uint16_t port, const char *certificate)
{
    struct sw_http_client_options options = {
        .host = "127.0.0.1", .port = port, .connect_timeout_ms = 120000};
    SW_AUTO(char, sw_free) path = NULL;
    SW_AUTO(char, sw_free) pem = NULL;
    struct sw_error error = {0};
    size_t len;

    close_client(s);
    if (certificate && !certificate[0]) {
        struct sw_tls_client_options tls = {.insecure_skip_verify = true};
        assert_int_equal(sw_tls_client_config_new(&tls, &options.tls, &error), 0);
    } else if (certificate) {
        path = sw_asprintf("%s/webhook/%s.crt", getenv("TEST_DATA"), certificate);
        assert_int_equal(sw_file_read(path, 65536, &pem, &len, &error), 0);
        struct sw_tls_client_options tls = {.ca_pem = pem};
        assert_int_equal(sw_tls_client_config_new(&tls, &options.tls, &error), 0);
    }
    assert_int_equal(sw_http_client_open(s->loop, &options, &s->log, &s->asked.client), 0);
    sw_tls_config_unref(options.tls);
}

static void ask(struct script *s, const char *method, const char *target, const char *body)
{
    static const struct sw_http_exchange_events events = {on_head, on_body, on_end};
    const struct sw_http_field fields[] = {{"Content-Type", "application/json"},
                                           {"Authorization", s->authorization}};
    struct sw_http_request request = {
        .method = method,
        .target = target,
        .fields = fields,
        .field_count = s->authorization ? 2 : 1,
        .body = body,
        .body_len = body ? strlen(body) : 0,
    };
    struct sw_http_exchange *exchange;

    s->asked.is_done = false;
    s->asked.body[0] = '\0';
    s->asked.status = 0;
    assert_int_equal(sw_http_send(s->asked.client, &request, &events, &s->asked, &exchange), 0);
}

/* ---- the webhook ---- */

static void review(struct sw_instance *self, const struct sw_review *asked,
                   struct sw_review_answer *answer)
{
    (void)self;
    answer->warnings[0] = asked->object->name;
}

static int start(struct sw_instance *self, void *arg)
{
    struct sw_admission admission = {
        .path = "/mutate", .kind = &sw_kind_deployment, .on_create = true, .fn = review};

    (void)arg;
    return sw_admission_register(self, &admission);
}

static bool open_webhook(struct script *s)
{
    struct sw_core_options options = {.username = "me"};
    struct sw_webhook_options webhook = {.address = "127.0.0.1:0", .cert_folder = s->folder};
    struct sw_error error = {0};
    struct sw_buf why;

    s->transport = fake_transport_new(s->loop);
    s->core = sw_core_new(s->loop, &s->transport->base, &options, s->metrics, &s->log);
    s->made_up = (struct made_up){.start = start};
    assert_int_equal(sw_core_add(s->core, &module_one, &s->made_up, &error), 0);
    sw_core_open(s->core);
    assert_int_equal(
        sw_webhook_open(s->loop, s->core, &webhook, s->metrics, &s->log, &s->webhook, &error), 0);
    sw_buf_init(&why, 1000);
    assert_false(sw_webhook_check(s->webhook, &why));
    assert_non_null(strstr(why.bytes, "/tls.crt: no such file or directory"));
    sw_buf_done(&why);
    assert_int_equal(sw_webhook_port(s->webhook), 0);
    return true;
}

static void put_file(struct script *s, const char *from, const char *to)
{
    SW_AUTO(char, sw_free) source = sw_asprintf("%s/webhook/%s", getenv("TEST_DATA"), from);
    SW_AUTO(char, sw_free) target = sw_asprintf("%s/%s", s->folder, to);
    SW_AUTO(char, sw_free) bytes = NULL;
    size_t len;

    assert_int_equal(sw_file_read(source, 65536, &bytes, &len, NULL), 0);
    test_write_file(target, bytes, len);
}

static bool put_first_certificate(struct script *s)
{
    put_file(s, "one.crt", "tls.crt");
    put_file(s, "one.key", "tls.key");
    return true;
}

static const char create[] =
    "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/"
    "v1\",\"request\":{\"uid\":\"u\","
    "\"resource\":{\"group\":\"apps\",\"version\":\"v1\",\"resource\":\"deployments\"},"
    "\"operation\":\"CREATE\",\"namespace\":\"n\",\"object\":{\"metadata\":{\"name\":\"web\"}}}}";

static bool listens(struct script *s)
{
    if (!sw_webhook_port(s->webhook))
        return false;
    connect_to(s, sw_webhook_port(s->webhook), "one");
    ask(s, "POST", "/mutate?timeout=3s", create);
    return true;
}

static bool is_answered(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.code, 0);
    assert_int_equal(s->asked.status, 200);
    assert_non_null(strstr(s->asked.body, "\"uid\":\"u\",\"allowed\":true,\"warnings\":[\"web\"]"));
    return true;
}

/* The pair is inconsistent for a moment: the one before stays in use. */
static bool put_second_certificate(struct script *s)
{
    put_file(s, "two.crt", "tls.crt");
    put_file(s, "two.key", "tls.key");
    return true;
}

static bool asks_with_trust_in_the_second(struct script *s)
{
    connect_to(s, sw_webhook_port(s->webhook), "two");
    ask(s, "POST", "/mutate", create);
    return true;
}

/* Until the change was seen, the handshake fails. */
static bool is_answered_in_the_end(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    if (s->asked.code == 0)
        return is_answered(s);
    ask(s, "POST", "/mutate", create);
    return false;
}

static bool asks_with_a_get(struct script *s)
{
    ask(s, "GET", "/mutate", NULL);
    return true;
}

static bool is_refused_with_405(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 405);
    return true;
}

/* Two objects of the largest size and their frame; white space does as well. */
enum { BODY_LIMIT = 8 << 20 };
static char large[BODY_LIMIT + 2];

static void ask_large(struct script *s, size_t len)
{
    memset(large, ' ', len);
    memcpy(large, create, sizeof(create) - 1);
    large[len] = '\0';
    ask(s, "POST", "/mutate", large);
}

static bool asks_with_8_mib(struct script *s)
{
    ask_large(s, BODY_LIMIT);
    return true;
}

static bool asks_with_a_byte_more(struct script *s)
{
    ask_large(s, BODY_LIMIT + 1);
    return true;
}

static bool is_refused_with_413(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 413);
    return true;
}

static bool asks_again(struct script *s)
{
    ask(s, "POST", "/mutate", create);
    return true;
}

TEST(reads_8_mib_and_not_a_byte_more)
{
    static bool (*const steps[])(struct script * s) = {
        open_webhook,
        put_first_certificate,
        listens,
        is_answered,
        asks_with_8_mib,
        is_answered,
        asks_with_a_byte_more,
        is_refused_with_413,
        asks_again,
        is_answered,
        NULL,
    };
    struct script s = {0};

    run(&s, steps);
}

static bool asks_while_draining(struct script *s)
{
    sw_webhook_drain(s->webhook);
    ask(s, "POST", "/mutate", create);
    return true;
}

static bool is_answered_with_close(struct script *s)
{
    if (!is_answered(s))
        return false;
    assert_string_equal(s->asked.connection, "close");
    return true;
}

TEST(listens_when_there_is_a_certificate_and_follows_its_change)
{
    static bool (*const steps[])(struct script * s) = {
        open_webhook,
        put_first_certificate,
        listens,
        is_answered,
        put_second_certificate,
        asks_with_trust_in_the_second,
        is_answered_in_the_end,
        asks_with_a_get,
        is_refused_with_405,
        asks_while_draining,
        is_answered_with_close,
        NULL,
    };
    struct script s = {0};

    run(&s, steps);
}

/* ---- ten thousand connections ---- */

enum {
    WAVE = 200, /* below the 256 that are held at once */
    WAVES = 50,
    CROWD = 600,        /* and beyond, all at once */
    REVIEWER_EVERY = 5, /* waves; in the middle of such a one somebody asks for a review */
    GROWTH_BYTES = 256 * 1024,
    RESIDENT_GROWTH_BYTES = 4 * 1024 * 1024,
};

struct crowd {
    int fds[CROWD];
    size_t open, sum, wave;
    size_t allocated, resident;
    unsigned looks;
};

/* They say nothing, or what is no TLS, or the beginning of a handshake; some end with a reset. */
static void join(struct script *s)
{
    static const char noise[] = "GET / HTTP/1.1\r\n\r\n";
    static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    struct crowd *crowd = s->crowd;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(sw_webhook_port(s->webhook)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct linger reset = {.l_onoff = 1};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    assert_true(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ||
                errno == EINPROGRESS);
    if (crowd->sum % 4 == 1)
        (void)!send(fd, noise, sizeof(noise) - 1, MSG_NOSIGNAL);
    else if (crowd->sum % 4 == 2)
        (void)!send(fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL);
    if (crowd->sum % 3 == 0)
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    crowd->fds[crowd->open++] = fd;
    crowd->sum++;
}

static void leave(struct crowd *crowd)
{
    while (crowd->open > 0)
        close(crowd->fds[--crowd->open]);
}

static void ask_anew(struct script *s)
{
    connect_to(s, sw_webhook_port(s->webhook), "one");
    ask(s, "POST", "/mutate", create);
}

/* The first waves are the measure: what is kept ready is there after them. */
static void measure(struct script *s)
{
    s->crowd->allocated = test_allocated();
    s->crowd->resident = test_resident("VmRSS:");
}

static bool comes_in_waves(struct script *s)
{
    struct crowd *crowd = s->crowd;

    if (crowd->open > 0) {
        if (s->asked.client && !is_answered(s))
            return false;
        leave(crowd);
        close_client(s);
    }
    if (crowd->wave == 2 * REVIEWER_EVERY && !crowd->allocated)
        measure(s);
    if (crowd->wave == WAVES)
        return true;
    while (crowd->open < WAVE)
        join(s);
    if (crowd->wave++ % REVIEWER_EVERY == 0)
        ask_anew(s);
    return false;
}

static bool comes_all_at_once(struct script *s)
{
    while (s->crowd->open < CROWD)
        join(s);
    ask_anew(s);
    return true;
}

static bool leaves(struct script *s)
{
    leave(s->crowd);
    ask_anew(s);
    return true;
}

/* Some are still being closed. */
static bool is_as_small_as_before(struct script *s)
{
    struct crowd *crowd = s->crowd;
    size_t now = test_allocated();

    if (now > crowd->allocated + GROWTH_BYTES) {
        if (++crowd->looks > 5000)
            fail_msg("%zu bytes are allocated, %zu were before", now, crowd->allocated);
        return false;
    }
#ifndef TEST_HAS_SANITIZER
    assert_in_range(test_resident("VmRSS:"), 0, crowd->resident + RESIDENT_GROWTH_BYTES);
#endif
    assert_int_equal(crowd->sum, WAVE * WAVES + CROWD);
    return true;
}

TEST(ten_thousand_connections_take_no_memory_and_keep_no_review_out)
{
    static bool (*const steps[])(struct script * s) = {
        open_webhook,   put_first_certificate, listens,     is_answered,
        comes_in_waves, comes_all_at_once,     is_answered, leaves,
        is_answered,    is_as_small_as_before, NULL,
    };
    struct crowd crowd = {0};
    struct script s = {.crowd = &crowd};
    struct rlimit files;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_true(files.rlim_cur > CROWD + 300);
    run(&s, steps);
}

/* ---- a thousand at once ---- */

enum {
#ifdef TEST_HAS_SANITIZER
    REVIEWERS = 300, /* above the 256, too; each handshake takes many times as long */
#else
    REVIEWERS = 1000,
#endif
};

/* Each with a connection of its own, all opened in the same moment; nobody closes one first. */
static bool all_ask(struct script *s)
{
    static const struct sw_http_exchange_events events = {on_head, on_body, on_end};
    static const struct sw_http_field json = {"Content-Type", "application/json"};

    /* Of the client that has been answered already: so that sessions are resumed. A thousand whole
     * handshakes are seconds of work for client and server together, which share a thread here. */
    for (int i = 0; i < REVIEWERS; i++) {
        SW_AUTO(char, sw_free) lane = sw_asprintf("%d", i);
        struct sw_http_request request = {
            .method = "POST",
            .target = "/mutate",
            .fields = &json,
            .field_count = 1,
            .body = create,
            .body_len = strlen(create),
            .own_connection = lane,
            .head_timeout_ms = 120000,
        };
        struct sw_http_exchange *exchange;
        assert_int_equal(
            sw_http_send(s->asked.client, &request, &events, &s->reviewers[i], &exchange), 0);
    }
    return true;
}

static bool all_are_answered(struct script *s)
{
    for (int i = 0; i < REVIEWERS; i++) {
        const struct asked *one = &s->reviewers[i];
        if (!one->is_done)
            return false;
        if (one->code || one->status != 200)
            fail_msg("reviewer %d got %d, status %d", i, one->code, one->status);
        assert_non_null(strstr(one->body, "\"allowed\":true"));
    }
    return true;
}

TEST(a_thousand_connections_at_once_get_a_review_answered_each)
{
    static bool (*const steps[])(struct script * s) = {
        open_webhook, put_first_certificate, listens, is_answered, all_ask, all_are_answered, NULL,
    };
    struct script s = {.reviewers = calloc(REVIEWERS, sizeof(struct asked))};
    struct rlimit files;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_true(files.rlim_cur > 2 * REVIEWERS + 100);
    run(&s, steps);
    free(s.reviewers);
}

/* ---- a certificate that nobody renews ---- */

/* It has lived for the most part already. */
static bool put_certificate_at_its_end(struct script *s)
{
    static const char *const names[] = {"127.0.0.1", NULL};
    int64_t now_us = sw_wall_us(s->loop);
    struct sw_tls_issue_options options = {.common_name = "webhook",
                                           .dns_names = names,
                                           .not_before_us = now_us - 60000000,
                                           .not_after_us = now_us + 2000000};
    struct sw_tls_pair pair;
    struct sw_error error;

    assert_int_equal(sw_tls_issue(&options, &pair, &error), 0);
    SW_AUTO(char, sw_free) key = sw_asprintf("%s/tls.key", s->folder);
    SW_AUTO(char, sw_free) certificate = sw_asprintf("%s/tls.crt", s->folder);
    test_write_file(key, pair.key_pem, strlen(pair.key_pem));
    test_write_file(certificate, pair.certificate_pem, strlen(pair.certificate_pem));
    sw_tls_pair_done(&pair);
    return true;
}

static bool opens_webhook_that_logs(struct script *s)
{
    fake_log_init(s->fake_log, s->loop);
    s->log = s->fake_log->log;
    return open_webhook(s);
}

static const char expires[] = "certificate expires soon, and has not been renewed";
static const char expired[] = "certificate has expired, clients refuse it";

static bool is_warned_of(struct script *s)
{
    if (!fake_log_has(s->fake_log, expires))
        return false;
    assert_int_equal(fake_log_count(s->fake_log, expires), 1);
    return true;
}

static bool is_complained_about(struct script *s)
{
    if (!fake_log_has(s->fake_log, expired))
        return false;
    assert_int_equal(fake_log_count(s->fake_log, expires), 1);
    assert_int_equal(fake_log_count(s->fake_log, expired), 1);
    return true;
}

/* What is fresh is not warned of. */
static bool is_forgotten_with_the_next(struct script *s)
{
    if (fake_log_count(s->fake_log, "certificate replaced") == 0)
        return false;
    assert_int_equal(fake_log_count(s->fake_log, expires), 1);
    assert_int_equal(fake_log_count(s->fake_log, expired), 1);
    return true;
}

TEST(a_certificate_that_nobody_renews_is_warned_of_and_complained_about)
{
    static bool (*const steps[])(struct script * s) = {
        opens_webhook_that_logs, put_certificate_at_its_end, is_warned_of, is_complained_about,
        put_second_certificate,  is_forgotten_with_the_next, NULL,
    };
    struct fake_log fake_log;
    struct script s = {.fake_log = &fake_log};

    run(&s, steps);
}

static bool open_webhook_on_a_taken_address(struct script *s)
{
    struct sw_webhook_options options = {.cert_folder = s->folder};
    struct sw_webhook *second;
    struct sw_error error = {0};
    char address[32];

    snprintf(address, sizeof(address), "127.0.0.1:%u", sw_webhook_port(s->webhook));
    options.address = address;
    assert_true(sw_webhook_open(s->loop, s->core, &options, s->metrics, &s->log, &second, &error) <
                0);
    assert_non_null(strstr(error.text, "--webhook-bind-address 127.0.0.1:"));
    return true;
}

TEST(says_which_address_it_cannot_have)
{
    static bool (*const steps[])(struct script * s) = {
        open_webhook, put_first_certificate,           listens,
        is_answered,  open_webhook_on_a_taken_address, NULL,
    };
    struct script s = {0};

    run(&s, steps);
}

/* ---- probes and metrics ---- */

static bool is_never_well(void *arg, struct sw_buf *why)
{
    (void)arg;
    sw_buf_puts(why, "it is a test");
    return false;
}

static bool open_endpoints(struct script *s)
{
    struct sw_endpoints_options options = {"127.0.0.1:0", "0.0.0.0:0"};
    struct sw_error error = {0};

    sw_health_add(&s->health, &(struct sw_check){"never", false, is_never_well, NULL});
    assert_int_equal(sw_endpoints_open(s->loop, &options, &s->health, s->metrics, &s->log,
                                       &s->endpoints, &error),
                     0);
    connect_to(s, sw_endpoints_health_port(s->endpoints), NULL);
    ask(s, "GET", "/healthz", NULL);
    return true;
}

static bool is_alive(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 200);
    assert_string_equal(s->asked.body, "ok");
    ask(s, "GET", "/readyz/never?verbose", NULL);
    return true;
}

static bool is_not_ready(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 500);
    assert_string_equal(s->asked.body, "internal server error: it is a test\n");
    ask(s, "GET", "/metrics", NULL);
    return true;
}

static bool has_no_metrics_there(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 404);
    ask(s, "POST", "/healthz", "x");
    return true;
}

static bool takes_no_post(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 405);
    sw_metric_set(sw_metric_child(sw_metrics_family(s->metrics, SW_METRIC_GAUGE, "slipway_test",
                                                    "Help.", NULL, NULL, 0),
                                  NULL),
                  7);
    connect_to(s, sw_endpoints_metrics_port(s->endpoints), NULL);
    ask(s, "GET", "/metrics", NULL);
    return true;
}

static bool shows_metrics(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 200);
    assert_non_null(strstr(s->asked.body, "slipway_test 7\n"));
    return true;
}

TEST(serve_probes_and_metrics_on_their_own_addresses)
{
    static bool (*const steps[])(struct script * s) = {
        open_endpoints, is_alive,      is_not_ready, has_no_metrics_there,
        takes_no_post,  shows_metrics, NULL,
    };
    struct script s = {0};

    run(&s, steps);
}

static bool open_none(struct script *s)
{
    struct sw_endpoints_options options = {"0", "0"};
    struct sw_error error = {0};

    assert_int_equal(sw_endpoints_open(s->loop, &options, &s->health, s->metrics, &s->log,
                                       &s->endpoints, &error),
                     0);
    assert_int_equal(sw_endpoints_health_port(s->endpoints), 0);
    assert_int_equal(sw_endpoints_metrics_port(s->endpoints), 0);
    return true;
}

TEST(are_closed_where_nobody_wants_them)
{
    static bool (*const steps[])(struct script * s) = {open_none, NULL};
    struct script s = {0};

    run(&s, steps);
}

/* ---- metrics for those who may ---- */

/* The API server: everybody is who he says, and may if that is mia. */
static void on_review(void *arg, struct fake_request *request)
{
    bool is_identity = strstr(request->target, "tokenreviews") != NULL;

    (void)arg;
    if (strstr(request->body, "nobody-answers"))
        return;
    fake_head(request, 201, NULL);
    if (is_identity)
        fake_body(request, strstr(request->body, "mia")
                               ? "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,"
                                 "\"user\":{\"username\":\"mia\"}}}"
                               : "{\"kind\":\"TokenReview\",\"status\":{}}");
    else
        fake_body(request, "{\"kind\":\"SubjectAccessReview\",\"status\":{\"allowed\":true}}");
    fake_end(request, 0);
}

static bool open_secure(struct script *s, const char *folder)
{
    struct sw_core_options core = {.username = "me"};
    struct sw_error error = {0};

    s->transport = fake_transport_new(s->loop);
    s->transport->on_request = on_review;
    s->core = sw_core_new(s->loop, &s->transport->base, &core, s->metrics, &s->log);
    struct sw_endpoints_options options = {.health_address = "127.0.0.1:0",
                                           .metrics_address = "0.0.0.0:0",
                                           .is_metrics_secure = true,
                                           .metrics_cert_folder = folder,
                                           .client = s->core->client};
    if (sw_endpoints_open(s->loop, &options, &s->health, s->metrics, &s->log, &s->endpoints,
                          &error))
        fail_msg("%s", error.text);
    return true;
}

static bool open_with_a_certificate_of_its_own(struct script *s)
{
    open_secure(s, NULL);
    connect_to(s, sw_endpoints_metrics_port(s->endpoints), "");
    ask(s, "GET", "/metrics", NULL);
    return true;
}

static bool is_refused_without_a_token(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 401);
    assert_string_equal(s->asked.authenticate, "Bearer realm=\"slipway\"");
    assert_string_equal(s->asked.body, "a bearer token is needed\n");
    s->authorization = "Bearer other";
    ask(s, "GET", "/metrics", NULL);
    return true;
}

static bool is_refused_with_a_token_of_nobody(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 401);
    s->authorization = "Bearer mia";
    ask(s, "GET", "/metrics", NULL);
    return true;
}

static bool is_let_in(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 200);
    assert_non_null(strstr(s->asked.body, "slipway_metrics_requests_total{code=\"401\"} 2\n"));
    assert_non_null(strstr(s->asked.body, "slipway_metrics_certificate_not_after_seconds "));
    ask(s, "HEAD", "/metrics", NULL);
    return true;
}

static bool is_let_in_without_a_body(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 200);
    assert_string_equal(s->asked.body, "");
    ask(s, "POST", "/metrics", "x");
    return true;
}

static bool may_not_post(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 405);
    ask(s, "GET", "/healthz", NULL);
    return true;
}

static bool finds_nothing_else_there(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 404);
    s->authorization = NULL;
    connect_to(s, sw_endpoints_health_port(s->endpoints), NULL);
    ask(s, "GET", "/healthz", NULL);
    return true;
}

static bool finds_probes_plain(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 200);
    return true;
}

TEST(serve_metrics_to_those_who_may)
{
    static bool (*const steps[])(struct script * s) = {
        open_with_a_certificate_of_its_own,
        is_refused_without_a_token,
        is_refused_with_a_token_of_nobody,
        is_let_in,
        is_let_in_without_a_body,
        may_not_post,
        finds_nothing_else_there,
        finds_probes_plain,
        NULL,
    };
    struct script s = {0};

    run(&s, steps);
}

/* Nobody has put one there yet: until then its own is served. */
static bool open_with_an_empty_folder(struct script *s)
{
    open_secure(s, s->folder);
    s->authorization = "Bearer mia";
    connect_to(s, sw_endpoints_metrics_port(s->endpoints), "");
    ask(s, "GET", "/metrics", NULL);
    return true;
}

static bool is_answered_all_the_same(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    assert_int_equal(s->asked.status, 200);
    put_first_certificate(s);
    connect_to(s, sw_endpoints_metrics_port(s->endpoints), "one");
    ask(s, "GET", "/metrics", NULL);
    return true;
}

/* Until the file was seen the handshake fails. */
static bool trusts_it_in_the_end(struct script *s)
{
    if (!s->asked.is_done)
        return false;
    if (s->asked.code) {
        ask(s, "GET", "/metrics", NULL);
        return false;
    }
    assert_int_equal(s->asked.status, 200);
    return true;
}

TEST(serve_metrics_with_the_certificate_of_a_folder)
{
    static bool (*const steps[])(struct script * s) = {
        open_with_an_empty_folder,
        is_answered_all_the_same,
        trusts_it_in_the_end,
        NULL,
    };
    struct script s = {0};

    run(&s, steps);
}

static bool asks_whom_nobody_answers(struct script *s)
{
    s->authorization = "Bearer nobody-answers";
    ask(s, "GET", "/metrics", NULL);
    return true;
}

static bool is_waiting(struct script *s)
{
    return fake_open_count(s->transport) == 1;
}

/* What the sanitizer and the open handles would tell. */
TEST(close_while_somebody_waits_to_be_verified)
{
    static bool (*const steps[])(struct script * s) = {
        open_with_a_certificate_of_its_own,
        is_refused_without_a_token,
        is_refused_with_a_token_of_nobody,
        is_let_in,
        is_let_in_without_a_body,
        asks_whom_nobody_answers,
        is_waiting,
        NULL,
    };
    struct script s = {0};

    run(&s, steps);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("webhook", listens_when_there_is_a_certificate_and_follows_its_change),
        CASE("webhook", reads_8_mib_and_not_a_byte_more),
        CASE("webhook", a_certificate_that_nobody_renews_is_warned_of_and_complained_about),
        CASE("webhook", says_which_address_it_cannot_have),
        CASE("webhook", ten_thousand_connections_take_no_memory_and_keep_no_review_out),
        CASE("webhook", a_thousand_connections_at_once_get_a_review_answered_each),
        CASE("endpoints", serve_probes_and_metrics_on_their_own_addresses),
        CASE("endpoints", serve_metrics_to_those_who_may),
        CASE("endpoints", serve_metrics_with_the_certificate_of_a_folder),
        CASE("endpoints", close_while_somebody_waits_to_be_verified),
        CASE("endpoints", are_closed_where_nobody_wants_them),
    };
    return RUN(tests);
}
