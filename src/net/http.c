/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header fields and the few of their values that client and server both understand. The parser is
 * in http_parser.c.
 */
#include "net/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/time.h"
#include "base/util.h"

/* A server that asks for more is asked again nevertheless: whoever waits would seem to hang. */
#define RETRY_AFTER_MAX_MS UINT64_C(300000)

const char *sw_http_field_get(const struct sw_http_fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->count; i++) {
        if (strcasecmp(fields->at[i].name, name) == 0) {
            return fields->at[i].value;
        }
    }
    return NULL;
}

bool sw_http_media_type_is(const char *content_type, const char *type)
{
    size_t len = strlen(type);

    if (!content_type || strncasecmp(content_type, type, len) != 0) {
        return false;
    }
    content_type += len;
    content_type += strspn(content_type, " \t");
    return *content_type == '\0' || *content_type == ';';
}

/* ---- Retry-After ---- */

/* The three forms of RFC 9110 section 5.6.7; the second has a year of two digits, which means the
 * one of that ending that is less than 50 years ahead. Years before 1970 are of no use here. */
static int parse_date(const char *text, int64_t wall_us, int64_t *ret_us)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char month[4] = "", form[SW_TIME_SIZE];
    int day, year, hour, minute, second, end = 0;
    bool is_short = false;

    if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &day, month, &year, &hour,
               &minute, &second, &end) == 6 &&
        end > 0) {
        is_short = false;
    } else if (sscanf(text, "%*9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n", &day, month, &year,
                      &hour, &minute, &second, &end) == 6 &&
               end > 0) {
        is_short = true;
    } else if (sscanf(text, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%n", month, &day, &hour,
                      &minute, &second, &year, &end) != 6 ||
               end == 0) {
        return -EINVAL;
    }
    if (text[end] != '\0' || strlen(month) != 3) {
        return -EINVAL;
    }
    if (is_short) {
        char now[SW_TIME_SIZE];
        int this_year;

        sw_time_format(wall_us, now);
        if (sscanf(now, "%4d", &this_year) != 1) {
            return -EINVAL;
        }
        year += this_year - this_year % 100;
        if (year > this_year + 50) {
            year -= 100;
        }
    }

    const char *at = strstr(months, month);
    if (!at || (at - months) % 3 != 0 || year < 1970 || day < 0 || hour < 0 || minute < 0 ||
        second < 0) {
        return -EINVAL;
    }
    int len = snprintf(form, sizeof(form), "%04d-%02d-%02dT%02d:%02d:%02dZ", year,
                       (int)(at - months) / 3 + 1, day, hour, minute, second);
    if (len < 0 || (size_t)len >= sizeof(form)) {
        return -EINVAL;
    }
    return sw_time_parse(form, (size_t)len, ret_us);
}

int sw_http_retry_after(const char *value, int64_t wall_us, uint64_t *ret_ms)
{
    size_t digits = strspn(value, "0123456789");
    uint64_t ms = 0;
    int64_t then_us;

    if (digits > 0) {
        if (value[digits] != '\0') {
            return -EINVAL;
        }
        for (size_t i = 0; i < digits && ms < RETRY_AFTER_MAX_MS; i++) {
            ms = ms * 10 + (uint64_t)(value[i] - '0') * 1000;
        }
    } else {
        if (parse_date(value, wall_us, &then_us) < 0) {
            return -EINVAL;
        }
        if (then_us > wall_us) {
            ms = (uint64_t)(then_us - wall_us + 999) / 1000;
        }
    }
    *ret_ms = SW_MIN(ms, RETRY_AFTER_MAX_MS);
    return 0;
}

/* ---- what may be sent ---- */

static bool is_token_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

bool sw_http_is_token(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (is_token_char(*at)) {
        at++;
    }
    return at != (const unsigned char *)text && *at == '\0';
}

bool sw_http_is_field_value(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if ((*at < 0x20 && *at != '\t') || *at == 0x7f) {
            return false;
        }
    }
    return true;
}

const char *sw_http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < SW_ARRAY_SIZE(reasons); i++) {
        if (reasons[i].status == status) {
            return reasons[i].reason;
        }
    }
    return "";
}

char *sw_http_basic(const char *username, const char *password)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *plain = sw_asprintf("%s:%s", username, password);
    size_t len = strlen(plain);
    char *text = sw_malloc(sizeof("Basic ") + (len + 2) / 3 * 4);
    char *at = stpcpy(text, "Basic ");
    for (size_t i = 0; i < len; i += 3) {
        size_t left = SW_MIN(len - i, (size_t)3);
        unsigned char in[3] = {0};
        memcpy(in, plain + i, left);
        *at++ = digits[in[0] >> 2];
        *at++ = digits[(in[0] & 3) << 4 | in[1] >> 4];
        *at++ = left > 1 ? digits[(in[1] & 15) << 2 | in[2] >> 6] : '=';
        *at++ = left > 2 ? digits[in[2] & 63] : '=';
    }
    *at = '\0';
    sw_free_secret(plain, len);
    return text;
}
