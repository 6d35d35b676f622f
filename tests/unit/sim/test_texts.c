/* SPDX-License-Identifier: Apache-2.0 */
/* Documents as text: written as jansson writes them, and looked into without being read. */
#include "test.h"

#include <jansson.h>

#include "base/util.h"
#include "dump.h"
#include "pool.h"
#include "text_path.h"

static const char *const documents[] = {
    "{}",
    "[]",
    "\"\"",
    "null",
    "-9223372036854775808",
    "[1,2.5,1e300,-0.1,true,false,null,[],{}]",
    "{\"a\":{\"b\":{\"c\":[{\"d\":1},{\"d\":2}]}},\"e\":\"x\"}",
    "{\"quote\\\"back\\\\slash\":\"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f / \\u00e9\\ud83d\\ude00\"}",
    "{\"braces\":\"}{][,:\\\"\",\"then\":{\"n\":7}}",
};

TEST(writes_what_jansson_writes)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(documents); i++) {
        json_t *value = json_loads(documents[i], JSON_DECODE_ANY, NULL);
        assert_non_null(value);
        SW_AUTO(char, sw_free) want = sw_sim_dump_as(value, JSON_COMPACT | JSON_ENCODE_ANY);
        size_t len = 0;
        SW_AUTO(char, sw_free) got = sw_sim_dump_text(value, &len);
        assert_string_equal(got, want);
        assert_int_equal(len, strlen(want));
        json_decref(value);
    }
}

TEST(a_nul_in_a_string_is_written_as_one)
{
    json_t *value = json_stringn("a\0b", 3);
    SW_AUTO(char, sw_free) got = sw_sim_dump_text(value, NULL);
    assert_string_equal(got, "\"a\\u0000b\"");
    json_decref(value);
}

static void check_path(const char *text, const char *path, const char *want)
{
    const char *value = NULL;
    size_t len = 0;
    bool is_there = sw_sim_text_path(text, strlen(text), path, &value, &len);
    assert_true(is_there == (want != NULL));
    if (want) {
        SW_AUTO(char, sw_free) got = sw_strndup(value, len);
        assert_string_equal(got, want);
    }
}

TEST(finds_a_member_on_its_path)
{
    check_path(documents[6], "", documents[6]);
    check_path(documents[6], "a.b.c", "[{\"d\":1},{\"d\":2}]");
    check_path(documents[6], "a.b", "{\"c\":[{\"d\":1},{\"d\":2}]}");
    check_path(documents[6], "e", "\"x\"");
    check_path(documents[6], "b", NULL);
    check_path(documents[6], "e.f", NULL);
    check_path(documents[6], "a.b.c.d", NULL);
    check_path(documents[8], "then.n", "7");
    check_path("{\"n\":12,\"m\":null}", "n", "12");
    check_path("{\"n\":12,\"m\":null}", "m", "null");
    check_path("{}", "a", NULL);
    check_path("[]", "a", NULL);
}

TEST(reads_nothing_behind_the_end_of_a_text_that_is_cut)
{
    const char *text = documents[8];
    for (size_t len = 0; len < strlen(text); len++) {
        char *cut = sw_malloc(len + 1); /* of the very size, for the sanitizer */
        memcpy(cut, text, len);
        const char *value = NULL;
        size_t value_len = 0;
        if (sw_sim_text_path(cut, len, "then.n", &value, &value_len)) {
            assert_true(value >= cut && value + value_len <= cut + len);
        }
        sw_free(cut);
    }
}

/* The last one: from here on jansson uses it. */
TEST(values_from_the_pool_are_like_others)
{
    sw_sim_pool_use();
    char *large = sw_malloc(100 * 1000);
    memset(large, 'x', 100 * 1000);
    for (int round = 0; round < 100; round++) {
        json_t *all = json_object();
        for (int i = 0; i < 200; i++) {
            char key[64];
            snprintf(key, sizeof(key), "%0*d", 1 + i % 60, i);
            json_object_set_new(all, key, json_stringn(large, (size_t)(i * i)));
        }
        SW_AUTO(char, sw_free) text = sw_sim_dump_text(all, NULL);
        json_t *again = json_loads(text, 0, NULL);
        assert_true(json_equal(all, again));
        json_decref(again);
        json_decref(all);
    }
    sw_free(large);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("texts", writes_what_jansson_writes),
        CASE("texts", a_nul_in_a_string_is_written_as_one),
        CASE("texts", finds_a_member_on_its_path),
        CASE("texts", reads_nothing_behind_the_end_of_a_text_that_is_cut),
        CASE("texts", values_from_the_pool_are_like_others),
    };
    return RUN(tests);
}
