/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values: making, reading, text, and who owns what. */
#include "base/json.h"

#include <errno.h>

#include "test.h"

static struct sw_arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = sw_arena_new(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena = sw_arena_free(arena);
    return 0;
}

static const char *dump(const struct sw_json *value)
{
    return sw_json_dump(value, arena, NULL);
}

static struct sw_json *parse(const char *text)
{
    struct sw_json *value = NULL;
    const char *why = NULL;
    if (sw_json_parse(arena, text, strlen(text), &value, &why)) {
        fail_msg("%s: %s", text, why);
    }
    return value;
}

TEST(builds_objects_in_order)
{
    struct sw_json *o = sw_json_object(arena);
    sw_json_set_string(o, "name", "a \"b\"");
    sw_json_set_int(o, "n", INT64_MIN);
    sw_json_set_bool(o, "yes", true);
    sw_json_set(o, "null", NULL);
    sw_json_set_string(o, "none", NULL);
    struct sw_json *meta = sw_json_set_object(o, "metadata");
    sw_json_set_int(meta, "x", 1);
    assert_ptr_equal(sw_json_set_object(o, "metadata"), meta);
    struct sw_json *list = sw_json_set_array(o, "list");
    sw_json_append_string(list, "e");
    sw_json_append(list, NULL);
    sw_json_append(list, sw_json_real(arena, 1.5));
    sw_json_append(list, sw_json_int(arena, -3));
    sw_json_set_int(sw_json_append_object(list), "y", 2);
    sw_json_set_int(o, "n", 5);
    assert_string_equal(dump(o), "{\"name\":\"a \\\"b\\\"\",\"n\":5,\"yes\":true,\"null\":null,"
                                 "\"none\":null,\"metadata\":{\"x\":1},"
                                 "\"list\":[\"e\",null,1.5,-3,{\"y\":2}]}");
}

TEST(a_copy_has_members_of_its_own)
{
    struct sw_json *o = parse("{\"a\":{\"b\":1},\"c\":\"x\"}");
    struct sw_json *copy = sw_json_copy(arena, o);
    assert_true(sw_json_equal(o, copy));
    sw_json_set_int(copy, "c", 2);
    sw_json_set_int(copy, "d", 3);
    sw_json_set_int(o, "e", 4);
    assert_string_equal(dump(o), "{\"a\":{\"b\":1},\"c\":\"x\",\"e\":4}");
    assert_string_equal(dump(copy), "{\"a\":{\"b\":1},\"c\":2,\"d\":3}");
    sw_json_set_int(sw_json_set_object(copy, "a"), "b", 5);
    assert_string_equal(dump(o), "{\"a\":{\"b\":5},\"c\":\"x\",\"e\":4}");
}

TEST(replaces_a_member_of_another_type)
{
    struct sw_json *o = sw_json_object(arena);
    sw_json_set_int(o, "a", 1);
    sw_json_set_int(sw_json_set_object(o, "a"), "b", 2);
    assert_string_equal(dump(o), "{\"a\":{\"b\":2}}");
    sw_json_append(sw_json_set_array(o, "a"), sw_json_bool(arena, false));
    assert_string_equal(dump(o), "{\"a\":[false]}");
}

TEST(takes_a_member_out)
{
    struct sw_json *o = parse("{\"a\":{\"b\":1},\"c\":\"x\"}");
    sw_json_remove(o, "a");
    sw_json_remove(o, "none");
    assert_string_equal(dump(o), "{\"c\":\"x\"}");
}

TEST(lets_a_value_stand_in_two_places)
{
    struct sw_json *shared = sw_json_object(arena);
    struct sw_json *a = sw_json_object(arena);
    struct sw_json *list = sw_json_array(arena);
    sw_json_set(a, "x", shared);
    sw_json_append(list, shared);
    sw_json_set_int(shared, "n", 1);
    assert_string_equal(dump(a), "{\"x\":{\"n\":1}}");
    sw_json_set(a, "x", NULL);
    sw_json_set_int(shared, "n", 2);
    assert_string_equal(dump(list), "[{\"n\":2}]");
}

TEST(outlives_nothing_but_its_arena)
{
    /* A value of one arena in an object of another: kept by the object's reference. */
    struct sw_arena *other = sw_arena_new(0);
    struct sw_json *o = sw_json_object(arena);
    sw_json_set(o, "s", sw_json_string(other, "kept"));
    sw_arena_free(other);
    assert_string_equal(sw_json_get_string(o, "s"), "kept");
}

TEST(repairs_text_that_is_not_utf8)
{
    struct sw_json *o = sw_json_object(arena);
    sw_json_set_string(o, "a\xff",
                       "b\xfe"
                       "c");
    assert_string_equal(dump(o), "{\"a\xef\xbf\xbd\":\"b\xef\xbf\xbd"
                                 "c\"}");
    assert_string_equal(sw_json_get_string(o, "a\xff"), "b\xef\xbf\xbd"
                                                        "c");
    assert_string_equal(sw_json_text(sw_json_string(arena, "\x80")), "\xef\xbf\xbd");
}

TEST(reads_what_is_there_and_defaults_elsewhere)
{
    const struct sw_json *o = parse(
        "{\"s\":\"x\",\"n\":42,\"t\":true,\"f\":1.0,\"o\":{\"p\":{\"q\":\"deep\"}},\"l\":[1,2]}");
    assert_string_equal(sw_json_get_string(o, "s"), "x");
    assert_null(sw_json_get_string(o, "n"));
    assert_null(sw_json_get_string(o, "absent"));
    assert_int_equal(sw_json_get_int(o, "n", 7), 42);
    assert_int_equal(sw_json_get_int(o, "f", 7), 7);
    assert_int_equal(sw_json_get_int(o, "s", 7), 7);
    assert_true(sw_json_get_bool(o, "t", false));
    assert_true(sw_json_get_bool(o, "n", true));
    assert_string_equal(sw_json_text(sw_json_at(o, "o", "p", "q", NULL)), "deep");
    assert_null(sw_json_at(o, "o", "x", "q", NULL));
    assert_null(sw_json_at(o, "s", "x", NULL));
    assert_ptr_equal(sw_json_at(o, NULL), o);
    assert_null(sw_json_at(NULL, "x", NULL));
    assert_int_equal(sw_json_size(sw_json_get(o, "l")), 2);
    assert_int_equal(sw_json_size(o), 6);
    assert_int_equal(sw_json_size(sw_json_get(o, "s")), 0);
    assert_int_equal(sw_json_size(NULL), 0);
    assert_null(sw_json_element(sw_json_get(o, "l"), 2));
    assert_null(sw_json_element(o, 0));
    assert_null(sw_json_get(NULL, "x"));
    assert_null(sw_json_get(sw_json_get(o, "l"), "x"));
    assert_int_equal(sw_json_type(sw_json_element(sw_json_get(o, "l"), 0)), SW_JSON_INT);
}

static bool note_member(void *arg, const char *key, const struct sw_json *value)
{
    char *text = arg;

    strncat(text, key, 8);
    strncat(text, sw_json_type(value) == SW_JSON_INT ? "# " : " ", 8);
    return strcmp(key, "b") != 0;
}

TEST(visits_members_in_order_until_it_is_told_to_stop)
{
    char text[64] = "";

    sw_json_each(parse("{\"z\":1,\"a\":\"x\",\"b\":2,\"c\":3}"), note_member, text);
    assert_string_equal(text, "z# a b# ");
    sw_json_each(parse("[1]"), note_member, text);
    sw_json_each(parse("1"), note_member, text);
    sw_json_each(NULL, note_member, text);
    assert_string_equal(text, "z# a b# ");
}

TEST(knows_types)
{
    assert_int_equal(sw_json_type(NULL), SW_JSON_NULL);
    assert_int_equal(sw_json_type(parse("null")), SW_JSON_NULL);
    assert_int_equal(sw_json_type(parse("false")), SW_JSON_BOOL);
    assert_int_equal(sw_json_type(parse("1")), SW_JSON_INT);
    assert_int_equal(sw_json_type(parse("1e2")), SW_JSON_REAL);
    assert_int_equal(sw_json_type(parse("\"\"")), SW_JSON_STRING);
    assert_int_equal(sw_json_type(parse("[]")), SW_JSON_ARRAY);
    assert_int_equal(sw_json_type(parse("{}")), SW_JSON_OBJECT);
    assert_int_equal(sw_json_type(sw_json_null(arena)), SW_JSON_NULL);
}

TEST(compares_by_content)
{
    assert_true(sw_json_equal(parse("{\"a\":1,\"b\":[1,2]}"), parse("{\"b\":[1,2],\"a\":1}")));
    assert_false(sw_json_equal(parse("[1,2]"), parse("[2,1]")));
    assert_false(sw_json_equal(parse("1"), parse("1.0")));
    assert_true(sw_json_equal(NULL, NULL));
    assert_true(sw_json_equal(NULL, parse("null")));
    assert_false(sw_json_equal(NULL, parse("false")));
}

TEST(takes_the_last_of_duplicate_keys)
{
    assert_string_equal(dump(parse("{\"a\":1,\"b\":2,\"a\":3}")), "{\"a\":3,\"b\":2}");
}

TEST(limits_nesting)
{
    char text[2 * 201 + 1];
    memset(text, '[', 200);
    memset(text + 200, ']', 200);
    struct sw_json *value = NULL;
    const char *why = NULL;
    assert_int_equal(sw_json_parse(arena, text, 400, &value, &why), 0);
    memset(text, '[', 201);
    memset(text + 201, ']', 201);
    assert_int_equal(sw_json_parse(arena, text, 402, &value, &why), -EINVAL);
    assert_string_equal(why, "nesting beyond 200 levels at byte 201");
    /* Brackets in strings do not count. */
    static char in_string[1000];
    memset(in_string, '[', sizeof(in_string));
    in_string[0] = in_string[sizeof(in_string) - 1] = '"';
    in_string[10] = '\\';
    in_string[11] = '"';
    assert_int_equal(sw_json_parse(arena, in_string, sizeof(in_string), &value, &why), 0);
}

TEST(refuses_what_is_not_json_and_says_where)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "[1] [2]",
        "01",
        "+1",
        "nul",
        "\"\\u0000\"",
        "\"\xff\"",
        "\"\\ud800\"",
        "99999999999999999999",
        "1e999",
        "'a'",
        "[1",
        "\"a",
        "{\"a\"}",
        "\xef\xbb\xbf{}",
        "<html>",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct sw_json *value = NULL;
        const char *why = NULL;
        if (sw_json_parse(arena, bad[i], strlen(bad[i]), &value, &why) != -EINVAL) {
            fail_msg("took %s", bad[i]);
        }
        assert_null(value);
        assert_non_null(strstr(why, "line "));
        assert_int_equal(sw_json_parse(arena, bad[i], strlen(bad[i]), &value, NULL), -EINVAL);
    }
}

TEST(refuses_a_text_cut_at_any_place)
{
    static const char text[] = "{\"a\":[1,2.5,true,null,\"x\\u00e4\\n\xc3\xa4\"],\"b\":{}}";
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        char *cut = malloc(len ? len : 1);
        memcpy(cut, text, len);
        struct sw_json *value = NULL;
        assert_int_equal(sw_json_parse(arena, cut, len, &value, NULL), -EINVAL);
        free(cut);
    }
    size_t len = 0;
    const char *again = sw_json_dump(parse(text), arena, &len);
    assert_int_equal(len, strlen(again));
    assert_true(sw_json_equal(parse(again), parse(text)));
}

TEST(refuses_to_put_a_value_into_itself)
{
    struct sw_json *o = sw_json_object(arena);
    struct sw_json *a = sw_json_array(arena);
    assert_aborts((sw_json_set(o, "x", o), 0));
    assert_aborts((sw_json_append(a, a), 0));
    assert_aborts((sw_json_set(a, "x", o), 0));
    assert_aborts((sw_json_append(o, a), 0));
}

#define IN_ARENA(does_this)                                                         \
    {                                                                               \
        .name = "json: " #does_this, .test_func = (does_this), .setup_func = setup, \
        .teardown_func = teardown                                                   \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        IN_ARENA(builds_objects_in_order),
        IN_ARENA(a_copy_has_members_of_its_own),
        IN_ARENA(replaces_a_member_of_another_type),
        IN_ARENA(takes_a_member_out),
        IN_ARENA(lets_a_value_stand_in_two_places),
        IN_ARENA(outlives_nothing_but_its_arena),
        IN_ARENA(repairs_text_that_is_not_utf8),
        IN_ARENA(reads_what_is_there_and_defaults_elsewhere),
        IN_ARENA(visits_members_in_order_until_it_is_told_to_stop),
        IN_ARENA(knows_types),
        IN_ARENA(compares_by_content),
        IN_ARENA(takes_the_last_of_duplicate_keys),
        IN_ARENA(limits_nesting),
        IN_ARENA(refuses_what_is_not_json_and_says_where),
        IN_ARENA(refuses_a_text_cut_at_any_place),
        IN_ARENA(refuses_to_put_a_value_into_itself),
    };
    return RUN(tests);
}
