/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens: what may be sent as one, and who one says we are.
 */
#include "kube/token.h"

#include <errno.h>
#include <slipway/json.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "kube/base64.h"

int sw_token_take(const char *bytes, size_t len, char **ret_token)
{
    static const char white[] = " \t\r\n";
    while (len > 0 && strchr(white, bytes[len - 1])) {
        len--; /* a NUL counts as white here, and nowhere else */
    }
    while (len > 0 && strchr(white, bytes[0]) && bytes[0]) {
        bytes++;
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)bytes[i] <= ' ' || (unsigned char)bytes[i] >= 0x7f) {
            return SW_E_SYNTAX;
        }
    }
    if (len == 0) {
        return -ENODATA;
    }
    *ret_token = sw_strndup(bytes, len);
    return 0;
}

char *sw_token_subject(const char *token)
{
    const char *dot = token ? strchr(token, '.') : NULL;
    const char *end = dot ? strchr(dot + 1, '.') : NULL;
    char *payload;
    size_t len;
    if (!end || sw_base64_decode(dot + 1, (size_t)(end - dot - 1), &payload, &len)) {
        return NULL;
    }
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *claims;
    char *subject = NULL;
    if (sw_json_parse(arena, payload, len, &claims, NULL) == 0) {
        const char *sub = sw_json_get_string(claims, "sub");
        subject = sub ? sw_strdup(sub) : NULL;
    }
    sw_arena_free(arena);
    sw_free_secret(payload, len);
    return subject;
}
