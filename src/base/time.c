/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 3339 and Go's durations. The calendar is computed here and not by the C library: timegm and
 * strptime depend on the locale and on what the library thinks of years far away.
 */
#include "base/time.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"

#define US_PER_S INT64_C(1000000)
#define S_PER_DAY INT64_C(86400)

/* ---- calendar ---- */

/*
 * Years are counted from 1 March, so that the leap day is the last of its year; 146 097 days are
 * 400 years, and 719 468 days lie between 0000-03-01 and 1970-01-01.
 */
static int64_t days_from_date(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static void date_from_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* from March */
    *ret_day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (int)(month < 10 ? month + 3 : month - 9);
    *ret_year = year_of_era + era * 400 + (*ret_month <= 2);
}

static int days_of_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && is_leap);
}

/* ---- writing ---- */

/* What four digits of a year can hold; a time beyond is written as the nearest that they can. */
#define FIRST_US INT64_C(-62167219200000000) /* 0000-01-01T00:00:00.000000Z */
#define LAST_US INT64_C(253402300799999999)  /* 9999-12-31T23:59:59.999999Z */

/* The lowest digits of value, and the character after them. By hand: a status names the times of
 * all its members, and snprintf takes 3 000 instructions for each. */
static char *put(char *at, int64_t value, int digits, char after)
{
    for (int i = digits - 1; i >= 0; i--, value /= 10) {
        at[i] = (char)('0' + value % 10);
    }
    at[digits] = after;
    return at + digits + 1;
}

/* With a NUL in the place of the "Z"; returns the microseconds. */
static int format(int64_t wall_us, char text[SW_TIME_SIZE])
{
    wall_us = SW_MAX(FIRST_US, SW_MIN(LAST_US, wall_us));
    int64_t us = wall_us % US_PER_S;
    us += us < 0 ? US_PER_S : 0;
    int64_t seconds = (wall_us - us) / US_PER_S;
    int second = (int)(seconds % S_PER_DAY);
    second += second < 0 ? (int)S_PER_DAY : 0;
    int64_t year;
    int month;
    int day;
    date_from_days((seconds - second) / S_PER_DAY, &year, &month, &day);
    char *at = put(text, year, 4, '-');
    at = put(at, month, 2, '-');
    at = put(at, day, 2, 'T');
    at = put(at, second / 3600, 2, ':');
    at = put(at, second / 60 % 60, 2, ':');
    put(at, second % 60, 2, '\0');
    return (int)us;
}

void sw_time_format(int64_t wall_us, char text[SW_TIME_SIZE])
{
    format(wall_us, text);
    memcpy(text + 19, "Z", 2);
}

void sw_time_format_micro(int64_t wall_us, char text[SW_TIME_SIZE])
{
    int us = format(wall_us, text);
    text[19] = '.';
    *put(text + 20, us, 6, 'Z') = '\0';
}

/* ---- reading ---- */

struct cursor {
    const char *at;
    const char *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Not with strchr: the object of a review or an event has ten times or more, each with seven of
 * these. */
static bool take(struct cursor *c, const char *any_of)
{
    while (c->at < c->end && *any_of) {
        if (*c->at == *any_of++) {
            c->at++;
            return true;
        }
    }
    return false;
}

static bool take_number(struct cursor *c, int digits, int *ret_value)
{
    int value = 0;
    for (int i = 0; i < digits; i++, c->at++) {
        if (c->at >= c->end || !is_digit(*c->at)) {
            return false;
        }
        value = value * 10 + (*c->at - '0');
    }
    *ret_value = value;
    return true;
}

/* Any number of digits, of which six count. */
static bool take_fraction(struct cursor *c, int *ret_us)
{
    int us = 0;
    int unit = (int)US_PER_S / 10;
    const char *start = c->at;
    for (; c->at < c->end && is_digit(*c->at); c->at++, unit /= 10) {
        us += (*c->at - '0') * unit;
    }
    *ret_us = us;
    return c->at > start;
}

/* "Z", "+02:00": what has to be subtracted to get UTC. */
static bool take_offset(struct cursor *c, int *ret_seconds)
{
    if (take(c, "Zz")) {
        *ret_seconds = 0;
        return true;
    }
    int sign = c->at < c->end && *c->at == '-' ? -1 : 1;
    int hours;
    int minutes;
    if (!take(c, "+-") || !take_number(c, 2, &hours) || !take(c, ":") ||
        !take_number(c, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *ret_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

int sw_time_parse(const char *text, size_t len, int64_t *ret_wall_us)
{
    struct cursor c = {text, text + len};
    int year, month, day, hour, minute, second, us = 0, offset;
    bool is_form =
        take_number(&c, 4, &year) && take(&c, "-") && take_number(&c, 2, &month) && take(&c, "-") &&
        take_number(&c, 2, &day) && take(&c, "Tt ") && take_number(&c, 2, &hour) && take(&c, ":") &&
        take_number(&c, 2, &minute) && take(&c, ":") && take_number(&c, 2, &second) &&
        (!take(&c, ".") || take_fraction(&c, &us)) && take_offset(&c, &offset) && c.at == c.end;
    if (!is_form || month < 1 || month > 12 || day < 1 || day > days_of_month(year, month) ||
        hour > 23 || minute > 59 || second > 60) {
        return -EINVAL;
    }
    int64_t seconds =
        days_from_date(year, month, day) * S_PER_DAY + hour * 3600 + minute * 60 + second - offset;
    /* A leap second ends a day in UTC; since 1970 does not count it, it is the next day's first. */
    if (second == 60 && seconds % S_PER_DAY != 0) {
        return -EINVAL;
    }
    *ret_wall_us = seconds * US_PER_S + us;
    return 0;
}

/* ---- durations ---- */

static const struct {
    const char *name;
    uint64_t ns;
} units[] = {
    {"ns", 1},
    {"us", 1000},
    {"\xc2\xb5s", 1000}, /* micro sign */
    {"\xce\xbcs", 1000}, /* Greek mu */
    {"ms", 1000000},
    {"s", UINT64_C(1000000000)},
    {"m", UINT64_C(60000000000)},
    {"h", UINT64_C(3600000000000)},
};

/* The unit is all that stands before the next digit, so that "ms" is never read as "m". */
static bool take_unit(const char **text, uint64_t *ret_ns)
{
    size_t len = strcspn(*text, "0123456789.");
    for (size_t i = 0; i < SW_ARRAY_SIZE(units); i++) {
        if (strlen(units[i].name) == len && strncmp(units[i].name, *text, len) == 0) {
            *text += len;
            *ret_ns = units[i].ns;
            return true;
        }
    }
    return false;
}

/* One number with its unit, in nanoseconds. */
static bool take_part(const char **text, uint64_t *ret_ns)
{
    const char *p = *text;
    uint64_t whole = 0;
    size_t digits = 0;
    for (; is_digit(*p); p++, digits++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole)) {
            return false;
        }
    }
    const char *fraction = p;
    if (*p == '.') {
        fraction = ++p;
        for (; is_digit(*p); p++) {
            digits++;
        }
    }
    const char *fraction_end = p;
    uint64_t unit;
    if (digits == 0 || !take_unit(&p, &unit) || __builtin_mul_overflow(whole, unit, &whole) ||
        whole > INT64_MAX) {
        return false;
    }
    /* What is finer than some nanoseconds is dropped, as it has to be anyway. */
    for (; fraction < fraction_end && unit > 1; fraction++) {
        whole += (uint64_t)(*fraction - '0') * unit / 10;
        unit /= 10;
    }
    *text = p;
    *ret_ns = whole;
    return true;
}

int sw_duration_parse(const char *text, uint64_t *ret_ms)
{
    const char *p = text;
    p += *p == '+';
    if (strcmp(p, "0") == 0) {
        *ret_ms = 0;
        return 0;
    }
    uint64_t ns = 0;
    do {
        uint64_t part;
        if (!take_part(&p, &part) || __builtin_add_overflow(ns, part, &ns) || ns > INT64_MAX) {
            return -EINVAL;
        }
    } while (*p);
    *ret_ms = (ns + 999999) / 1000000;
    return 0;
}
