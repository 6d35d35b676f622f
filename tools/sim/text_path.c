/* SPDX-License-Identifier: Apache-2.0 */
/* One member of a JSON text (text_path.h): values on the way are stepped over by their brackets. */
#include "text_path.h"

#include <string.h>

/* at: the opening quote. Behind the closing one. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\';
    }
    return at < end ? at + 1 : end;
}

/* Behind the value that begins here. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0) {
                return at; /* behind a number or a word */
            }
            depth--;
            at++;
        } else if (depth == 0 && *at == ',') {
            return at;
        } else {
            at++;
            continue;
        }
        if (depth == 0) {
            return at;
        }
    }
    return end;
}

/* The value of the member of the object that begins here; NULL where there is none. */
static const char *find_member(const char *at, const char *end, const char *name, size_t name_len)
{
    if (at == end || *at != '{') {
        return NULL;
    }
    for (at++; at < end && *at == '"';) {
        const char *key = at + 1;
        at = skip_string(at, end);
        size_t key_len = (size_t)(at - key) - 1;
        at++; /* the colon */
        if (key_len == name_len && memcmp(key, name, name_len) == 0) {
            return at < end ? at : NULL;
        }
        at = skip_value(at, end);
        at += at < end && *at == ',';
    }
    return NULL;
}

bool sw_sim_text_path(const char *text, size_t len, const char *path, const char **ret_value,
                      size_t *ret_len)
{
    const char *end = text + len;
    const char *at = text;
    while (at && *path) {
        size_t name_len = strcspn(path, ".");
        at = find_member(at, end, path, name_len);
        path += name_len + (path[name_len] == '.');
    }
    if (!at) {
        return false;
    }
    *ret_value = at;
    *ret_len = (size_t)(skip_value(at, end) - at);
    return true;
}
