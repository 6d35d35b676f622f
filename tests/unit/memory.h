/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory this process has: what is allocated, with and without the sanitizer, and what is
 * resident. A sanitizer keeps what is freed, so resident memory says nothing there.
 */
#ifndef TESTS_UNIT_MEMORY_H
#define TESTS_UNIT_MEMORY_H

#include <malloc.h>

#include "test.h"

#if defined(__SANITIZE_ADDRESS__)
#define TEST_HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_HAS_SANITIZER 1
#endif
#endif
#ifdef TEST_HAS_SANITIZER
#include <sanitizer/allocator_interface.h>
#endif

static inline size_t test_allocated(void)
{
#ifdef TEST_HAS_SANITIZER
    return __sanitizer_get_current_allocated_bytes();
#else
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#endif
}

/* "VmRSS:" at this moment, "VmHWM:" at most; in bytes. */
static inline size_t test_resident(const char *key)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long long kib = 0;

    assert_non_null(file);
    while (kib == 0 && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = strtoull(line + strlen(key), NULL, 10);
        }
    }
    fclose(file);
    assert_true(kib > 0);
    return (size_t)kib * 1024;
}

#endif
