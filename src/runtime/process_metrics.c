/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read from /proc when somebody asks: proc(5), the fields of /proc/self/stat.
 */
#include "runtime/process_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/util.h"

struct sw_process_metrics {
    struct sw_metrics *metrics;
    struct sw_metric *cpu, *resident, *virtual_, *virtual_max, *open_fds, *max_fds, *started;
};

static double open_fd_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    double count = 0;

    if (!folder)
        return 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count - 3; /* ".", "..", and the folder itself */
}

static double max_fd_count(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : (double)limit.rlim_cur;
}

/* As Prometheus' own clients say it: without a limit the largest number. */
static double max_virtual_bytes(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_AS, &limit) ? 0 : (double)limit.rlim_cur;
}

static void collect(void *arg)
{
    struct sw_process_metrics *process = arg;
    SW_AUTO(char, sw_free) text = NULL;
    unsigned long user, system, virtual_;
    long resident;
    size_t len;

    sw_metric_set(process->open_fds, open_fd_count());
    sw_metric_set(process->max_fds, max_fd_count());
    sw_metric_set(process->virtual_max, max_virtual_bytes());
    if (sw_file_read("/proc/self/stat", 4096, &text, &len, NULL))
        return;
    /* The second field, the name in brackets, may hold anything: begin behind its end. */
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest,
                        ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d "
                        "%*d %*u %lu %ld",
                        &user, &system, &virtual_, &resident) != 4)
        return;
    double total = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    sw_metric_add(process->cpu, SW_MAX(total - sw_metric_value(process->cpu), 0.0));
    sw_metric_set(process->virtual_, (double)virtual_);
    sw_metric_set(process->resident, (double)resident * (double)sysconf(_SC_PAGESIZE));
}

static struct sw_metric *plain(struct sw_metrics *metrics, enum sw_metric_type type,
                               const char *name, const char *help)
{
    return sw_metric_child(sw_metrics_family(metrics, type, name, help, NULL, NULL, 0), NULL);
}

static void set_build_info(struct sw_metrics *metrics)
{
    static const char *const labels[] = {"version", NULL};
    static const char *const values[] = {SW_VERSION, NULL};

    sw_metric_set(sw_metric_child(sw_metrics_family(metrics, SW_METRIC_GAUGE, "slipway_build_info",
                                                    "1, with the version.", labels, NULL, 0),
                                  values),
                  1);
}

struct sw_process_metrics *sw_process_metrics_new(struct sw_loop *loop, struct sw_metrics *metrics)
{
    struct sw_process_metrics *process = SW_NEW(struct sw_process_metrics);

    process->metrics = metrics;
    process->cpu = plain(metrics, SW_METRIC_COUNTER, "process_cpu_seconds_total",
                         "Processor time, user and system.");
    process->resident =
        plain(metrics, SW_METRIC_GAUGE, "process_resident_memory_bytes", "Resident memory.");
    process->virtual_ =
        plain(metrics, SW_METRIC_GAUGE, "process_virtual_memory_bytes", "Virtual memory.");
    process->virtual_max = plain(metrics, SW_METRIC_GAUGE, "process_virtual_memory_max_bytes",
                                 "Virtual memory that may be had.");
    process->open_fds = plain(metrics, SW_METRIC_GAUGE, "process_open_fds", "Open descriptors.");
    process->max_fds =
        plain(metrics, SW_METRIC_GAUGE, "process_max_fds", "Descriptors that may be open.");
    process->started = plain(metrics, SW_METRIC_GAUGE, "process_start_time_seconds",
                             "When it started, in seconds since 1970.");
    sw_metric_set(process->started, (double)sw_wall_us(loop) / 1e6);
    set_build_info(metrics);
    sw_metrics_on_collect(metrics, collect, process);
    return process;
}

struct sw_process_metrics *sw_process_metrics_free(struct sw_process_metrics *process)
{
    if (!process)
        return NULL;
    sw_metrics_off_collect(process->metrics, collect, process);
    return sw_free(process);
}
