/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of this very process, against what the kernel says of it elsewhere.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "runtime/process_metrics.h"

#include "../test.h"

#define STARTED_US (INT64_C(1700000000) * 1000000)

struct stage {
    struct sw_loop *loop;
    struct sw_metrics *metrics;
    struct sw_process_metrics *process;
    struct sw_buf text;
};

static void begin(struct stage *s)
{
    s->loop = sw_loop_virtual_new(STARTED_US, 1);
    s->metrics = sw_metrics_new();
    s->process = sw_process_metrics_new(s->loop, s->metrics);
    sw_buf_init(&s->text, SIZE_MAX);
}

static void end(struct stage *s)
{
    sw_process_metrics_free(s->process);
    sw_metrics_free(s->metrics);
    sw_buf_done(&s->text);
    assert_int_equal(sw_loop_close(s->loop), 0);
}

static void scrape(struct stage *s)
{
    sw_buf_done(&s->text);
    sw_buf_init(&s->text, SIZE_MAX);
    assert_int_equal(sw_metrics_write(s->metrics, SW_METRICS_TEXT, &s->text), 0);
}

/* Of the last scrape. */
static double value(const struct stage *s, const char *name)
{
    char line[128];

    snprintf(line, sizeof(line), "\n%s ", name);
    const char *at = strstr(s->text.bytes, line);
    if (!at) {
        fail_msg("no %s in:\n%s", name, s->text.bytes);
        abort();
    }
    return strtod(at + strlen(line), NULL);
}

TEST(it_says_when_it_started_and_its_version)
{
    struct stage s;

    begin(&s);
    sw_loop_virtual_advance(s.loop, 3600 * 1000);
    scrape(&s);
    assert_true(value(&s, "process_start_time_seconds") == 1700000000.0);
    assert_non_null(strstr(s.text.bytes, "\nslipway_build_info{version=\"" SW_VERSION "\"} 1\n"));
    end(&s);
}

TEST(open_descriptors_are_counted_without_the_one_that_counts)
{
    struct rlimit limit;
    struct stage s;

    begin(&s);
    scrape(&s);
    double before = value(&s, "process_open_fds");
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), other = dup(fd);
    assert_true(fd >= 0 && other >= 0);
    scrape(&s);
    assert_true(value(&s, "process_open_fds") == before + 2);
    close(fd);
    close(other);
    scrape(&s);
    assert_true(value(&s, "process_open_fds") == before);
    assert_true(before >= 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(value(&s, "process_max_fds") == (double)limit.rlim_cur);
    end(&s);
}

static double vm_bytes(const char *key)
{
    char line[256];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");

    assert_non_null(file);
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtoul(line + strlen(key), NULL, 10);
    fclose(file);
    assert_true(kib > 0);
    return (double)kib * 1024;
}

TEST(memory_is_what_the_kernel_says_and_grows_with_use)
{
    size_t len = (size_t)64 << 20;
    struct stage s;

    begin(&s);
    scrape(&s);
    double resident = value(&s, "process_resident_memory_bytes");
    /* The kernel counts pages of a thread in batches; between two looks more may be touched. */
    assert_true(resident > vm_bytes("VmRSS:") / 2 && resident < vm_bytes("VmRSS:") * 2);
    double virtual_ = value(&s, "process_virtual_memory_bytes");
    assert_true(virtual_ >= resident);
    char *much = malloc(len);
    assert_non_null(much);
    memset(much, 1, len);
    scrape(&s);
    assert_true(value(&s, "process_resident_memory_bytes") > resident + (double)len / 2);
    assert_true(value(&s, "process_virtual_memory_bytes") >= virtual_ + (double)len / 2);
    free(much);
    end(&s);
}

static double used_s(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* By the time that was used, not by that which has passed: nothing here depends on the machine. */
static void work(double seconds)
{
    volatile unsigned number = 0;

    for (double until_s = used_s() + seconds; used_s() < until_s;)
        for (int i = 0; i < 100000; i++)
            number++;
}

TEST(processor_time_rises_with_work_and_never_falls)
{
    struct stage s;

    begin(&s);
    scrape(&s);
    double before = value(&s, "process_cpu_seconds_total");
    work(0.1);
    scrape(&s);
    double after = value(&s, "process_cpu_seconds_total");
    /* The kernel counts in hundredths of a second, user and system each for itself. */
    assert_true(after >= before + 0.05);
    assert_true(after <= used_s() + 0.05);
    scrape(&s);
    assert_true(value(&s, "process_cpu_seconds_total") >= after);
    end(&s);
}

TEST(once_it_is_freed_nobody_looks_any_more)
{
    struct stage s;

    begin(&s);
    scrape(&s);
    double before = value(&s, "process_open_fds");
    s.process = sw_process_metrics_free(s.process);
    assert_null(s.process);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    scrape(&s);
    close(fd);
    assert_true(value(&s, "process_open_fds") == before);
    end(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("process_metrics", it_says_when_it_started_and_its_version),
        CASE("process_metrics", open_descriptors_are_counted_without_the_one_that_counts),
        CASE("process_metrics", memory_is_what_the_kernel_says_and_grows_with_use),
        CASE("process_metrics", processor_time_rises_with_work_and_never_falls),
        CASE("process_metrics", once_it_is_freed_nobody_looks_any_more),
    };
    return RUN(tests);
}
