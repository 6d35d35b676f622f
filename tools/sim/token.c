/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three parts joined by points: head, claims, and a signature that is empty.
 */
#include "token.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "dump.h"
#include "kube/base64.h"

/* base64url without padding (RFC 4648 section 5). */
static void encode(struct sw_buf *out, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i += 3) {
        size_t count = SW_MIN(len - i, (size_t)3);
        uint32_t bits = 0;
        char group[4];
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < count ? (unsigned char)text[i + k] : 0U);
        for (size_t k = 0; k < 4; k++)
            group[k] = digits[bits >> (18 - 6 * k) & 63];
        sw_buf_append(out, group, count + 1);
    }
}

char *sw_sim_token_new(const char *namespace_, const char *name, int64_t until_s)
{
    SW_AUTO(char, sw_free)
    sub = sw_asprintf("system:serviceaccount:%s:%s", namespace_, name);
    json_t *claims = json_pack("{s:s, s:I}", "sub", sub, "exp", (json_int_t)until_s);
    char *text = sw_sim_dump_as(claims, JSON_COMPACT);
    struct sw_buf token;

    sw_buf_init(&token, SIZE_MAX);
    encode(&token, "{\"alg\":\"none\"}");
    sw_buf_puts(&token, ".");
    encode(&token, text);
    sw_buf_puts(&token, ".");
    sw_free(text);
    json_decref(claims);
    return sw_buf_steal(&token);
}

/* New; NULL if it is not base64url. */
static char *decode(const char *text, size_t len)
{
    SW_AUTO(char, sw_free) padded = sw_malloc(len + 4);
    char *bytes;
    size_t padded_len = len;

    for (size_t i = 0; i < len; i++)
        padded[i] = (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
    while (padded_len % 4 != 0)
        padded[padded_len++] = '=';
    return sw_base64_decode(padded, padded_len, &bytes, &len) ? NULL : bytes;
}

char *sw_sim_token_subject(const char *token, int64_t now_s)
{
    const char *begin = strchr(token, '.');
    const char *end = begin ? strchr(begin + 1, '.') : NULL;

    if (!end)
        return NULL;
    SW_AUTO(char, sw_free) text = decode(begin + 1, (size_t)(end - begin - 1));
    json_t *claims = text ? json_loads(text, 0, NULL) : NULL;
    const char *sub = json_string_value(json_object_get(claims, "sub"));
    bool is_over = json_integer_value(json_object_get(claims, "exp")) <= now_s;
    char *subject = sub && !is_over ? sw_strdup(sub) : NULL;
    json_decref(claims);
    return subject;
}
