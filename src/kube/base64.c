/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64: six bits a character are shifted into an accumulator and leave it by eights. What is
 * decoded is mostly secret, so nothing is left behind in freed memory.
 */
#include "kube/base64.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"

int sw_base64_encode(struct sw_buf *out, const char *bytes, size_t len)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = (const unsigned char *)bytes;
    size_t need = (len + 2) / 3 * 4;
    char *text;
    int code = sw_buf_reserve(out, need, &text);
    if (code) {
        return code;
    }
    for (size_t i = 0; i < len; i += 3) {
        uint32_t three = (uint32_t)in[i] << 16;
        three |= i + 1 < len ? (uint32_t)in[i + 1] << 8 : 0;
        three |= i + 2 < len ? (uint32_t)in[i + 2] : 0;
        *text++ = alphabet[three >> 18];
        *text++ = alphabet[three >> 12 & 63];
        *text++ = i + 1 < len ? alphabet[three >> 6 & 63] : '=';
        *text++ = i + 2 < len ? alphabet[three & 63] : '=';
    }
    sw_buf_commit(out, need);
    return 0;
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == '+' || c == '-') {
        return 62;
    }
    return c == '/' || c == '_' ? 63 : -1;
}

int sw_base64_decode(const char *text, size_t len, char **ret_bytes, size_t *ret_len)
{
    size_t room = len / 4 * 3 + 4;
    char *bytes = sw_malloc(room);
    size_t count = 0;
    size_t digits = 0;
    size_t padding = 0;
    uint32_t bits = 0;
    bool is_good = true;
    for (size_t i = 0; i < len && is_good; i++) {
        if (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
            continue;
        }
        int value = value_of(text[i]);
        if (text[i] == '=') {
            padding++;
        } else if (value < 0 || padding > 0) {
            is_good = false;
        } else {
            bits = bits << 6 | (uint32_t)value;
            digits++;
            if (digits % 4 != 1) {
                unsigned left = (unsigned)(6 - 2 * ((digits - 1) % 4));
                bytes[count++] = (char)(bits >> left & 0xff);
            }
        }
    }
    /* One digit alone is no byte; padding only fills up to four. */
    is_good = is_good && digits % 4 != 1 &&
              (padding == 0 || (padding <= 2 && (digits + padding) % 4 == 0));
    if (!is_good) {
        sw_free_secret(bytes, room);
        return -EINVAL;
    }
    bytes[count] = '\0';
    *ret_bytes = bytes;
    *ret_len = count;
    return 0;
}
