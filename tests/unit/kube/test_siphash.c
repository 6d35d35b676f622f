/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4-128 against values that OpenSSL 3.0 computed (openssl mac ... SIPHASH). */
#include "test.h"

#include <inttypes.h>

#include "kube/siphash.h"

static const struct {
    size_t len; /* of 00 01 02 ... */
    const char *counted_key, *zero_key;
} known[] = {
    {0, "a3817f04ba25a8e66df67214c7550293", "5049d74780a3e07d4202ab47d4cef2f4"},
    {1, "da87c1d86b99af44347659119b22fc45", "d41e12e85e4cafb831f094e57538b801"},
    {7, "a1f1ebbed8dbc153c0b84aa61ff08239", "78369bf9405ce46157d77ff83381b2ff"},
    {8, "3b62a9ba6258f5610f83e264f31497b4", "4b6534f901eb440ee95540294a75af84"},
    {9, "264499060ad9baabc47f8b02bb6d71ed", "d8c7e44c0313eb9659b9a4f89b623e94"},
    {15, "5493e99933b0a8117e08ec0f97cfc3d9", "9fb8537a9c0f25128384ea0249c0955e"},
    {16, "6ee2a4ca67b054bbfd3315bf85230577", "81ad50ab90f25032a234bb58732a508b"},
    {17, "473d06e8738db89854c066c47ae47740", "ce28377b849a1e0ddef30074abbb2e44"},
    {33, "77c6077146f01c32b6b69d5f4ea9ffcf", "c8e6fcd3737d50bee7d72fa910049a63"},
    {64, "1eaf077dc0d4cd3f8cad4d383658a74b", "b9f891676c0ac74611666cfef75419e2"},
    {100, "39732dd009be17338297c6358fe5e6d9", "f0d44bcbe9d84929cca33124587392eb"},
};

static uint8_t counted[100];

static void text_of(const uint8_t *key, size_t len, size_t step, char text[33])
{
    struct sw_siphash hash;
    uint64_t high;
    uint64_t low;
    sw_siphash_init(&hash, key);
    for (size_t at = 0; at < len; at += step) {
        sw_siphash_add(&hash, counted + at, step < len - at ? step : len - at);
    }
    sw_siphash_done(&hash, &high, &low);
    snprintf(text, 33, "%016" PRIx64 "%016" PRIx64, high, low);
}

TEST(computes_known_values)
{
    char text[33];
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        text_of(counted, known[i].len, 100, text);
        assert_string_equal(text, known[i].counted_key);
        text_of(NULL, known[i].len, 100, text);
        assert_string_equal(text, known[i].zero_key);
    }
}

TEST(takes_bytes_in_any_pieces)
{
    char whole[33];
    char pieces[33];
    for (size_t len = 0; len <= sizeof(counted); len++) {
        text_of(NULL, len, 100, whole);
        for (size_t step = 1; step < 20; step++) {
            text_of(NULL, len, step, pieces);
            assert_string_equal(pieces, whole);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("siphash", computes_known_values),
        CASE("siphash", takes_bytes_in_any_pieces),
    };
    for (size_t i = 0; i < sizeof(counted); i++) {
        counted[i] = (uint8_t)i;
    }
    return RUN(tests);
}
