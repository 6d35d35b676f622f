/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded (LD_PRELOAD) into a process, whose wall clock is then wrong: ahead of the machine's, or
 * behind it, by as many seconds as stand in the file that SLIPWAY_TEST_WALL_CLOCK names, an int64_t
 * in the machine's own form. The file is mapped, so that what is written there counts at once: a
 * step, as NTP makes it. All other clocks are left as they are.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const int64_t zero;
static const volatile int64_t *ahead_s = &zero;

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("SLIPWAY_TEST_WALL_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*ahead_s), PROT_READ, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        abort(); /* a test that forgot the file would show nothing */
    close(fd);
    ahead_s = at;
}

/* The system call, not libc's function of the same name: that is this one. */
EXPORT int clock_gettime(clockid_t id, struct timespec *at)
{
    long rc = syscall(SYS_clock_gettime, id, at);

    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        at->tv_sec += (time_t)*ahead_s;
    return (int)rc;
}

EXPORT time_t time(time_t *to)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}

EXPORT int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *at = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = (suseconds_t)(now.tv_nsec / 1000)};
    return 0;
}
