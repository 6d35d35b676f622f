/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends AdmissionReviews to a webhook over TLS and prints, as one line of JSON, how many were
 * answered and how long that took. Two ways:
 *
 *   - without --rate, each connection sends its next review as soon as the one before is answered:
 *     how many a second can it do?
 *   - with --rate R, R reviews a second are due at even distances, whatever the server does; the
 *     time of each is counted from the moment at which it was due, so that a server that stalls
 *     does not hide how many had to wait. The loop is turned without a rest meanwhile, since its
 *     timers count in milliseconds: the generator wants a core of its own.
 *
 *     bench_admission --port P --ca FILE [--name HOST] [--path PATH] [--connections N]
 *                     [--seconds S] [--rate R] REVIEW.json...
 *
 * --name is the host that the certificate must be for, where that is not 127.0.0.1.
 * The reviews are sent in turn. Before the time begins each connection is opened and has carried a
 * review, and what comes within the first tenth of it is not counted either.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/http_client.h"
#include "net/tls.h"

enum {
    REVIEWS_MAX = 64,
    REVIEW_LIMIT_BYTES = 8 * 1024 * 1024,
    TIMEOUT_MS = 30 * 1000,
};

struct text {
    char *bytes;
    size_t len;
};

struct settings {
    const char *ca_file, *name, *path;
    unsigned port, connections, seconds, rate;
};

struct bench {
    const struct settings *settings;
    struct sw_loop *loop;
    struct sw_log log;
    struct sw_http_client *client;
    struct text reviews[REVIEWS_MAX];
    size_t review_count, next_review;
    struct sw_timer pace; /* with a rate: sends what is due; without: ends it */
    bool is_warm;         /* the connections are open, and the time has begun */
    uint64_t begin_ns, counted_ns, end_ns;
    uint64_t planned; /* with a rate: how many were sent */
    unsigned waiting; /* sent and not answered */
    uint64_t *taken_ns;
    size_t taken_count, taken_room;
    uint64_t failed;
    struct sw_error why; /* of the first that failed */
};

/* One review on its way. */
struct shot {
    struct bench *bench;
    uint64_t due_ns;
    int status;
    bool is_allowed;
};

static void send_one(struct bench *bench, uint64_t due_ns);
static void begin(struct bench *bench);

/* ---- answers ---- */

static void count(struct bench *bench, uint64_t due_ns, uint64_t now_ns)
{
    if (!bench->is_warm || due_ns < bench->counted_ns || due_ns >= bench->end_ns)
        return;
    if (bench->taken_count == bench->taken_room) {
        bench->taken_room = bench->taken_room ? 2 * bench->taken_room : 65536;
        bench->taken_ns = sw_realloc(bench->taken_ns, bench->taken_room, sizeof(uint64_t));
    }
    bench->taken_ns[bench->taken_count++] = now_ns - due_ns;
}

static void fail(struct bench *bench, const char *why)
{
    if (!bench->failed++)
        sw_error_set(&bench->why, SW_E_PROTOCOL, "%s", why);
}

static void end_if_over(struct bench *bench)
{
    if (!bench->waiting && !sw_timer_is_active(&bench->pace) && bench->client) {
        sw_http_client_close(bench->client);
        bench->client = NULL;
    }
}

static void on_head(void *arg, const struct sw_http_head *head)
{
    struct shot *shot = arg;

    shot->status = head->status;
}

/* An answer is short: what is looked for does not lie across two pieces. If it did, the run would
 * fail, not pass. */
static void on_body(void *arg, const char *bytes, size_t len)
{
    static const char allowed[] = "\"allowed\":true";
    struct shot *shot = arg;

    if (memmem(bytes, len, allowed, sizeof(allowed) - 1))
        shot->is_allowed = true;
}

static void on_end(void *arg, int code, const struct sw_error *error)
{
    struct shot *shot = arg;
    struct bench *bench = shot->bench;
    uint64_t now_ns = sw_now_ns(bench->loop);

    bench->waiting--;
    if (code)
        fail(bench, error ? error->text : sw_strerror(code));
    else if (shot->status != 200 || !shot->is_allowed)
        fail(bench, shot->status == 200 ? "not allowed" : sw_http_reason(shot->status));
    else
        count(bench, shot->due_ns, now_ns);
    sw_free(shot);
    if (!bench->is_warm) {
        if (!bench->waiting && !bench->failed)
            begin(bench);
    } else if (!bench->settings->rate && now_ns < bench->end_ns && bench->failed < 100) {
        /* Not for ever where nothing works. */
        send_one(bench, now_ns);
    }
    end_if_over(bench);
}

/* ---- requests ---- */

static void send_one(struct bench *bench, uint64_t due_ns)
{
    static const struct sw_http_field json = {"Content-Type", "application/json"};
    static const struct sw_http_exchange_events events = {on_head, on_body, on_end};
    const struct text *review = &bench->reviews[bench->next_review++ % bench->review_count];
    struct sw_http_request request = {
        .method = "POST",
        .target = bench->settings->path,
        .fields = &json,
        .field_count = 1,
        .body = review->bytes,
        .body_len = review->len,
        .head_timeout_ms = TIMEOUT_MS,
        .total_timeout_ms = TIMEOUT_MS,
    };
    struct sw_http_exchange *exchange;
    struct shot *shot = SW_NEW(struct shot);

    shot->bench = bench;
    shot->due_ns = due_ns;
    int code = sw_http_send(bench->client, &request, &events, shot, &exchange);
    if (code) {
        fail(bench, sw_strerror(code));
        sw_free(shot);
        return;
    }
    bench->waiting++;
}

static void on_pace(struct sw_timer *timer)
{
    struct bench *bench = container_of(timer, struct bench, pace);
    uint64_t now_ns = sw_now_ns(bench->loop);
    unsigned rate = bench->settings->rate;

    if (!rate || now_ns >= bench->end_ns) {
        end_if_over(bench);
        return;
    }
    for (;;) {
        uint64_t due_ns = bench->begin_ns + bench->planned * UINT64_C(1000000000) / rate;
        if (due_ns > now_ns)
            break;
        bench->planned++;
        send_one(bench, due_ns);
    }
    sw_timer_start(timer, 0);
}

static void begin(struct bench *bench)
{
    const struct settings *s = bench->settings;
    uint64_t ns = s->seconds * UINT64_C(1000000000);

    bench->is_warm = true;
    bench->begin_ns = sw_now_ns(bench->loop);
    bench->counted_ns = bench->begin_ns + ns / 10;
    bench->end_ns = bench->begin_ns + ns;
    sw_timer_start(&bench->pace, s->rate ? 0 : s->seconds * UINT64_C(1000));
    for (unsigned i = 0; !s->rate && i < s->connections; i++)
        send_one(bench, bench->begin_ns);
}

/* ---- what is printed ---- */

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

static double at_ms(const struct bench *bench, double part)
{
    size_t at = (size_t)(part * (double)bench->taken_count);

    if (!bench->taken_count)
        return 0;
    return (double)bench->taken_ns[SW_MIN(at, bench->taken_count - 1)] / 1e6;
}

static double cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int report(struct bench *bench)
{
    double counted_s = (double)(bench->end_ns - bench->counted_ns) / 1e9;

    if (bench->failed)
        fprintf(stderr, "bench_admission: %llu failed, the first: %s\n",
                (unsigned long long)bench->failed, bench->why.text);
    if (bench->taken_count)
        qsort(bench->taken_ns, bench->taken_count, sizeof(uint64_t), compare);
    printf("{\"answered\": %zu, \"failed\": %llu, \"per_s\": %.1f, \"median_ms\": %.4f, "
           "\"p99_ms\": %.4f, \"max_ms\": %.4f, \"bytes\": %zu, \"own_cpu_s\": %.2f}\n",
           bench->taken_count, (unsigned long long)bench->failed,
           bench->taken_count ? (double)bench->taken_count / counted_s : 0, at_ms(bench, 0.5),
           at_ms(bench, 0.99), at_ms(bench, 1), bench->reviews[0].len, cpu_s());
    return bench->failed || !bench->taken_count ? 1 : 0;
}

/* ---- from the arguments to the end ---- */

static _Noreturn void usage(void)
{
    fputs("usage: bench_admission --port P --ca FILE [--name HOST] [--path PATH]\n"
          "                       [--connections N] [--seconds S] [--rate R] REVIEW.json...\n",
          stderr);
    exit(2);
}

static unsigned number(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (!text[0] || *end || value < 1 || value > 1000 * 1000)
        usage();
    return (unsigned)value;
}

static void parse(int argc, char *argv[], struct settings *s)
{
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'},        {"ca", required_argument, NULL, 'a'},
        {"name", required_argument, NULL, 'n'},        {"path", required_argument, NULL, 't'},
        {"connections", required_argument, NULL, 'c'}, {"seconds", required_argument, NULL, 's'},
        {"rate", required_argument, NULL, 'r'},        {NULL},
    };

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'p':
            s->port = number(optarg);
            break;
        case 'a':
            s->ca_file = optarg;
            break;
        case 'n':
            s->name = optarg;
            break;
        case 't':
            s->path = optarg;
            break;
        case 'c':
            s->connections = number(optarg);
            break;
        case 's':
            s->seconds = number(optarg);
            break;
        case 'r':
            s->rate = number(optarg);
            break;
        default:
            usage();
        }
    if (!s->port || s->port > UINT16_MAX || !s->ca_file || optind == argc ||
        argc - optind > REVIEWS_MAX)
        usage();
}

static int open_client(struct bench *bench, struct sw_error *error)
{
    const struct settings *s = bench->settings;
    struct sw_tls_config *tls = NULL;
    SW_AUTO(char, sw_free) ca = NULL;
    size_t len;
    int code = sw_file_read(s->ca_file, REVIEW_LIMIT_BYTES, &ca, &len, error);

    if (!code)
        code = sw_tls_client_config_new(&(struct sw_tls_client_options){.ca_pem = ca}, &tls, error);
    if (code)
        return code;
    struct sw_http_client_options options = {
        .host = "127.0.0.1",
        .port = (uint16_t)s->port,
        .tls = tls,
        .tls_name = s->name,
        .user_agent = "bench_admission",
        .max_connections = s->connections,
    };
    code = sw_http_client_open(bench->loop, &options, &bench->log, &bench->client);
    sw_tls_config_unref(tls);
    return code ? sw_error_set(error, code, "no client: %s", sw_strerror(code)) : 0;
}

static int run(const struct settings *settings, char *files[], size_t file_count)
{
    struct bench bench = {.settings = settings};
    struct sw_error error = {0};
    int code = sw_loop_open(&bench.loop);

    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < file_count && !code; i++, bench.review_count++)
        code = sw_file_read(files[i], REVIEW_LIMIT_BYTES, &bench.reviews[i].bytes,
                            &bench.reviews[i].len, &error);
    if (!code)
        code = open_client(&bench, &error);
    if (!code) {
        sw_timer_init(&bench.pace, bench.loop, on_pace);
        for (unsigned i = 0; i < settings->connections; i++)
            send_one(&bench, 0);
        sw_loop_run(bench.loop);
        code = report(&bench);
    } else {
        fprintf(stderr, "bench_admission: %s\n", error.text[0] ? error.text : sw_strerror(code));
    }
    for (size_t i = 0; i < file_count; i++)
        sw_free(bench.reviews[i].bytes);
    sw_free(bench.taken_ns);
    return sw_loop_close(bench.loop) || code ? 1 : 0;
}

int main(int argc, char *argv[])
{
    struct settings settings = {.path = "/", .connections = 16, .seconds = 5};

    parse(argc, argv, &settings);
    return run(&settings, argv + optind, (size_t)(argc - optind));
}
