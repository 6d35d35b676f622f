/* SPDX-License-Identifier: Apache-2.0 */
/* The query of a request. Of a name that comes twice the first counts, as in the real server. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/map.h"
#include "base/util.h"
#include "net/url.h"

/* A plus is a space here (application/x-www-form-urlencoded), unlike in a path. */
static char *decode(const char *text, size_t len)
{
    SW_AUTO(char, sw_free) copy = sw_strndup(text, len);
    for (char *at = copy; *at; at++) {
        if (*at == '+') {
            *at = ' ';
        }
    }
    char *decoded = NULL;
    return sw_url_decode(copy, len, &decoded) ? sw_strdup("") : decoded;
}

void sw_sim_query_read(struct sw_sim_query *query, const char *text)
{
    query->values = sw_map_new();
    while (*text) {
        size_t len = strcspn(text, "&");
        size_t name_len = strcspn(text, "=&");
        if (name_len > 0) {
            SW_AUTO(char, sw_free) name = decode(text, name_len);
            if (!sw_map_get(query->values, name)) {
                const char *value = text + name_len + (name_len < len);
                sw_map_set(query->values, name, decode(value, (size_t)(text + len - value)));
            }
        }
        text += len;
        text += *text == '&';
    }
}

void sw_sim_query_done(struct sw_sim_query *query)
{
    if (!query->values) {
        return;
    }
    struct sw_map_iter it = {0};
    while (sw_map_next(query->values, &it)) {
        sw_free(it.value);
    }
    query->values = sw_map_free(query->values);
}

const char *sw_sim_query_get(const struct sw_sim_query *query, const char *name)
{
    return sw_map_get(query->values, name);
}

bool sw_sim_query_is_true(const struct sw_sim_query *query, const char *name)
{
    /* Anything but these two is true (queryparams.Convert of a bool). */
    const char *value = sw_sim_query_get(query, name);
    return value && strcmp(value, "false") != 0 && strcmp(value, "0") != 0;
}

int sw_sim_query_number(const struct sw_sim_query *query, const char *name, int64_t absent,
                        int64_t *ret_number)
{
    const char *value = sw_sim_query_get(query, name);
    if (!value || !*value) {
        *ret_number = absent;
        return 0;
    }
    char *end = NULL;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno || *end) {
        return -EINVAL;
    }
    *ret_number = number;
    return 0;
}
