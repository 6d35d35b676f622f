/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast is text turned into typed views? For each document, in the same run: our scanner, and as
 * a baseline jansson's DOM (built and freed, nothing read from it), in MB/s of processor time (so
 * that others on the machine matter less), the median of several rounds. Where the kernel lets us
 * count, also instructions for each byte.
 *
 *     bench_decode DEPLOYMENT.json [REVIEW.json]
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <slipway/apps.h>
#include <slipway/arena.h>

#include "base/error.h"
#include "base/map.h"
#include "kube/decode.h"

enum { ROUNDS = 9 };
#define ROUND_NS UINT64_C(100000000)

struct subject {
    char *bytes;
    size_t len;
    struct sw_decoder *decoder;
    struct sw_arena *arena;
};

typedef void (*work_fn)(struct subject *subject);

static void fail(const char *what)
{
    fprintf(stderr, "bench_decode: %s\n", what);
    exit(1);
}

/* ---- what is measured ---- */

static void decode_object(struct subject *s)
{
    struct sw_object *object;
    struct sw_error error;
    if (sw_decode_object(s->decoder, s->bytes, s->len, NULL, &object, &error)) {
        fail(error.text);
    }
    sw_object_free(s->decoder, object);
}

static void decode_review(struct subject *s)
{
    struct sw_review_view review;
    struct sw_error error;
    if (sw_decode_review(s->decoder, s->arena, s->bytes, s->len, &review, &error)) {
        fail(error.text);
    }
    sw_object_free(s->decoder, review.object);
    sw_object_free(s->decoder, review.old);
    sw_arena_reset(s->arena);
}

static void build_dom(struct subject *s)
{
    json_error_t error;
    json_t *json = json_loadb(s->bytes, s->len, 0, &error);
    if (!json) {
        fail(error.text);
    }
    json_decref(json);
}

/* ---- measuring ---- */

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int counter_open(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_HW_INSTRUCTIONS,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static uint64_t counter_read(int fd)
{
    uint64_t value = 0;
    return fd >= 0 && read(fd, &value, sizeof(value)) == (ssize_t)sizeof(value) ? value : 0;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double measure(const char *name, work_fn work, struct subject *subject, int counter)
{
    double rates[ROUNDS];
    double instructions = 0;
    for (int round = -1; round < ROUNDS; round++) { /* the first warms up */
        uint64_t count = 0;
        uint64_t before = counter_read(counter);
        uint64_t begin = now_ns();
        uint64_t spent;
        do {
            for (int i = 0; i < 100; i++, count++) {
                work(subject);
            }
            spent = now_ns() - begin;
        } while (spent < ROUND_NS);
        double bytes = (double)count * (double)subject->len;
        instructions = (double)(counter_read(counter) - before) / bytes;
        if (round >= 0) {
            rates[round] = bytes / ((double)spent / 1e3);
        }
    }
    qsort(rates, ROUNDS, sizeof(*rates), compare);
    double median = rates[ROUNDS / 2];
    printf("  %-12s %8.0f MB/s  %8.2f us", name, median, (double)subject->len / median);
    if (instructions > 0) {
        printf("  %6.2f instructions/byte", instructions);
    }
    printf("\n");
    return median;
}

static void compare_on(const char *path, bool is_review, struct subject *subject, int counter)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        fail(path);
    }
    subject->bytes = malloc(1 << 20);
    subject->len = fread(subject->bytes, 1, 1 << 20, file);
    fclose(file);
    printf("%s: %zu bytes\n", is_review ? "AdmissionReview" : "Deployment", subject->len);
    double ours = measure("slipway", is_review ? decode_review : decode_object, subject, counter);
    double dom = measure("jansson", build_dom, subject, counter);
    printf("  factor       %8.1f\n", ours / dom);
    free(subject->bytes);
}

int main(int argc, char **argv)
{
    struct sw_intern *intern = sw_intern_new();
    struct subject subject = {.decoder = sw_decoder_new(&sw_kind_deployment, intern)};
    subject.arena = sw_arena_new(0);
    int counter = counter_open();
    if (argc < 2) {
        fail("usage: bench_decode DEPLOYMENT.json [REVIEW.json]");
    }
    compare_on(argv[1], false, &subject, counter);
    if (argc > 2) {
        compare_on(argv[2], true, &subject, counter);
    }
    if (counter >= 0) {
        close(counter);
    }
    sw_arena_free(subject.arena);
    sw_decoder_free(subject.decoder);
    sw_intern_free(intern);
    return 0;
}
