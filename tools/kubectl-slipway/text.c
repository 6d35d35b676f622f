/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations, bars, widths.
 */
#include "text.h"

#include <stdio.h>
#include <string.h>

enum { SECOND = 1, MINUTE = 60, HOUR = 3600, DAY = 86400 };

/* The two largest units, the second one only while it matters and is not zero. */
static void two(char text[KS_DURATION_SIZE], int64_t seconds, int64_t unit, char letter,
                int64_t part, char part_letter)
{
    long long whole = seconds / unit, rest = seconds % unit / part;

    if (rest > 0)
        snprintf(text, KS_DURATION_SIZE, "%lld%c%lld%c", whole, letter, rest, part_letter);
    else
        snprintf(text, KS_DURATION_SIZE, "%lld%c", whole, letter);
}

void ks_duration(int64_t us, char text[KS_DURATION_SIZE])
{
    int64_t seconds = us > 0 ? us / 1000000 : 0;

    if (seconds < 2 * MINUTE)
        two(text, seconds, SECOND, 's', SECOND, 's');
    else if (seconds < 10 * MINUTE)
        two(text, seconds, MINUTE, 'm', SECOND, 's');
    else if (seconds < 3 * HOUR)
        two(text, seconds, MINUTE, 'm', MINUTE, 'm');
    else if (seconds < 8 * HOUR)
        two(text, seconds, HOUR, 'h', MINUTE, 'm');
    else if (seconds < 2 * DAY)
        two(text, seconds, HOUR, 'h', HOUR, 'h');
    else if (seconds < 8 * DAY)
        two(text, seconds, DAY, 'd', HOUR, 'h');
    else
        two(text, seconds, DAY, 'd', DAY, 'd');
}

void ks_bar(int32_t done, int32_t of, bool is_utf8, char text[KS_BAR_SIZE])
{
    size_t len = 0;

    if (of <= 0) {
        memcpy(text, "-", 2);
        return;
    }
    done = done < 0 ? 0 : done > of ? of : done;
    int full = (int)((int64_t)done * KS_BAR_CELLS / of);
    if (full == 0 && done > 0)
        full = 1;
    for (int i = 0; i < KS_BAR_CELLS; i++) {
        const char *cell =
            i < full ? (is_utf8 ? "\xe2\x96\x88" : "#") : (is_utf8 ? "\xe2\x96\x91" : "-");
        len += (size_t)snprintf(text + len, KS_BAR_SIZE - len, "%s", cell);
    }
    snprintf(text + len, KS_BAR_SIZE - len, " %d/%d", (int)done, (int)of);
}

static bool begins_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

size_t ks_width(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += begins_character(*text);
    return width;
}

size_t ks_fit(const char *text, size_t columns)
{
    size_t at = 0;

    for (; text[at]; at++)
        if (begins_character(text[at]) && columns-- == 0)
            break;
    return at;
}
