/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small texts that come from outside: times, durations, Accept headers, and bytes that should
 * be UTF-8. The first byte says which.
 */
#include <string.h>

#include "base/metrics.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/util.h"
#include "fuzz.h"

/* What was read is, once written, read as the same. */
static void try_time(const char *text, size_t len)
{
    int64_t us;
    int64_t again;
    char written[SW_TIME_SIZE];
    if (sw_time_parse(text, len, &us) == 0) {
        sw_time_format_micro(us, written);
        sw_assert(strlen(written) == strlen("2006-01-02T15:04:05.000000Z"));
        sw_assert(sw_time_parse(written, strlen(written), &again) == 0);
        /* An offset may lead out of the years that can be written. */
        sw_assert(again == us || strncmp(written, "0000", 4) == 0 ||
                  strncmp(written, "9999", 4) == 0);
    }
}

static void try_duration(const char *text)
{
    uint64_t ms;
    if (sw_duration_parse(text, &ms) == 0) {
        sw_assert(ms <= INT64_MAX / 1000000 + 1);
    }
}

static void try_utf8(const char *text, size_t len)
{
    char *repaired = sw_utf8_repair(text, len);
    sw_assert(!repaired == sw_utf8_is_valid(text, len));
    sw_assert(!repaired || sw_utf8_is_valid(repaired, strlen(repaired)));
    sw_free(repaired);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len == 0) {
        return 0;
    }
    const char *text = (const char *)bytes + 1;
    char *copy = sw_strndup(text, len - 1);
    switch (bytes[0]) {
    case 't':
        try_time(text, len - 1);
        break;
    case 'd':
        try_duration(copy);
        break;
    case 'a':
        sw_assert(sw_metrics_content_type(sw_metrics_negotiate(copy)));
        break;
    default:
        try_utf8(text, len - 1);
    }
    sw_free(copy);
    return 0;
}
