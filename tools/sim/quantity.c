/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of resources. Counted in thousandths, rounded up, which is as fine as the server keeps.
 */
#include "quantity.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* Room for the largest suffix times a thousand. */
__extension__ typedef __int128 wide;

enum form { DECIMAL, BINARY, EXPONENT };

struct suffix {
    const char *text;
    int base, power;
    enum form form;
};

static const struct suffix suffixes[] = {
    {"n", 10, -9, DECIMAL}, {"u", 10, -6, DECIMAL}, {"m", 10, -3, DECIMAL}, {"", 10, 0, DECIMAL},
    {"k", 10, 3, DECIMAL},  {"M", 10, 6, DECIMAL},  {"G", 10, 9, DECIMAL},  {"T", 10, 12, DECIMAL},
    {"P", 10, 15, DECIMAL}, {"E", 10, 18, DECIMAL}, {"Ki", 2, 10, BINARY},  {"Mi", 2, 20, BINARY},
    {"Gi", 2, 30, BINARY},  {"Ti", 2, 40, BINARY},  {"Pi", 2, 50, BINARY},  {"Ei", 2, 60, BINARY},
};

static bool parse_suffix(const char *text, struct suffix *ret_suffix)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(suffixes); i++) {
        if (strcmp(text, suffixes[i].text) == 0) {
            *ret_suffix = suffixes[i];
            return true;
        }
    }
    char *end;
    if ((*text != 'e' && *text != 'E') || !text[1]) {
        return false;
    }
    long power = strtol(text + 1, &end, 10);
    *ret_suffix = (struct suffix){.base = 10, .power = (int)power, .form = EXPONENT};
    return !*end && power >= -18 && power <= 18;
}

/* digits * base^power / 10^decimals in thousandths, rounded away from zero. */
static bool to_milli(wide digits, int decimals, const struct suffix *suffix, int64_t *ret_milli)
{
    wide value = digits;
    int tens = 3 - decimals + (suffix->base == 10 ? suffix->power : 0);
    for (int i = 0; suffix->base == 2 && i < suffix->power; i++) {
        value *= 2;
        if (value > ((wide)1 << 100)) {
            return false;
        }
    }
    for (; tens > 0; tens--) {
        value *= 10;
        if (value > ((wide)1 << 100)) {
            return false;
        }
    }
    wide divisor = 1;
    for (; tens < 0; tens++) {
        divisor *= 10;
        if (divisor > ((wide)1 << 100)) {
            return false;
        }
    }
    value = (value + divisor - 1) / divisor;
    if (value > INT64_MAX) {
        return false;
    }
    *ret_milli = (int64_t)value;
    return true;
}

static bool parse(const char *text, int64_t *ret_milli, enum form *ret_form)
{
    bool is_negative = *text == '-';
    text += *text == '-' || *text == '+';
    wide digits = 0;
    int decimals = 0;
    bool is_fraction = false;
    size_t count = 0;
    for (; isdigit((unsigned char)*text) || (*text == '.' && !is_fraction); text++) {
        if (*text == '.') {
            is_fraction = true;
            continue;
        }
        if (++count > 20) {
            return false;
        }
        digits = digits * 10 + (*text - '0');
        decimals += is_fraction;
    }
    struct suffix suffix;
    if (count == 0 || !parse_suffix(text, &suffix) ||
        !to_milli(digits, decimals, &suffix, ret_milli)) {
        return false;
    }
    *ret_milli = is_negative ? -*ret_milli : *ret_milli;
    *ret_form = suffix.form;
    return true;
}

static json_t *write(int64_t milli, enum form form)
{
    /* The largest suffix that leaves a whole number. Under 1024, binary suffixes are not used. */
    const struct suffix *best = &suffixes[2];
    wide best_scale = 1;
    int64_t size = milli < 0 ? -milli : milli;
    bool is_binary = form == BINARY && size % 1000 == 0 && size / 1000 >= 1024;
    for (size_t i = 3; i < SW_ARRAY_SIZE(suffixes); i++) {
        const struct suffix *one = &suffixes[i];
        wide scale = 1000;
        for (int p = 0; p < one->power; p++) {
            scale *= one->base;
        }
        bool is_wanted = *one->text == '\0' || (one->form == BINARY) == is_binary;
        if (is_wanted && milli % scale == 0 && scale > best_scale) {
            best = one;
            best_scale = scale;
        }
    }
    int64_t number = (int64_t)(milli / best_scale);
    if (form == EXPONENT && best->power) {
        return json_sprintf("%" PRId64 "e%d", number, best->power);
    }
    return json_sprintf("%" PRId64 "%s", number, best->text);
}

json_t *sw_sim_quantity_write(const json_t *value)
{
    char number[64];
    const char *text = json_string_value(value);
    if (json_is_number(value)) {
        snprintf(number, sizeof(number), "%.15g", json_number_value(value));
        text = number;
    }
    int64_t milli;
    enum form form;
    if (!text || !parse(text, &milli, &form)) {
        return NULL;
    }
    return milli ? write(milli, form) : json_string("0");
}
