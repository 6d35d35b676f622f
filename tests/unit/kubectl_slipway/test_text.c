/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations, bars, tables, JSON and YAML.
 */
#include "test.h"

#include <slipway/json.h>

#include "base/buf.h"
#include "output.h"
#include "table.h"
#include "text.h"

#define SECOND INT64_C(1000000)

TEST(shows_durations_as_kubectl_does)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {-5, "0s"},      {0, "0s"},       {119, "119s"},    {120, "2m"},      {192, "3m12s"},
        {600, "10m"},    {10799, "179m"}, {10800, "3h"},    {26400, "7h20m"}, {28800, "8h"},
        {172799, "47h"}, {172800, "2d"},  {183600, "2d3h"}, {691200, "8d"},   {86400 * 400, "400d"},
    };
    char text[KS_DURATION_SIZE];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ks_duration(cases[i].seconds * SECOND + (cases[i].seconds < 0 ? 0 : 999999), text);
        assert_string_equal(text, cases[i].text);
    }
}

static void assert_bar(int32_t done, int32_t of, const char *expected)
{
    char text[KS_BAR_SIZE];

    ks_bar(done, of, false, text);
    assert_string_equal(text, expected);
}

TEST(draws_a_bar_that_is_full_only_at_the_end)
{
    char text[KS_BAR_SIZE];

    assert_bar(0, 3, "---------- 0/3");
    assert_bar(1, 100, "#--------- 1/100");
    assert_bar(2, 3, "######---- 2/3");
    assert_bar(99, 100, "#########- 99/100");
    assert_bar(3, 3, "########## 3/3");
    assert_bar(-1, 3, "---------- 0/3");
    assert_bar(9, 3, "########## 3/3");
    assert_bar(0, 0, "-");
    assert_bar(INT32_MAX, INT32_MAX, "########## 2147483647/2147483647");
    ks_bar(1, 2, true, text);
    assert_string_equal(text, "█████░░░░░ 1/2");
    assert_int_equal(ks_width(text), 14);
}

TEST(cuts_between_characters)
{
    assert_int_equal(ks_fit("aé│b", 2), 3);
    assert_int_equal(ks_fit("aé│b", 3), 6);
    assert_int_equal(ks_fit("aé│b", 9), 7);
    assert_int_equal(ks_fit("", 0), 0);
}

static const char *const heads[] = {"NAME", "BAR", "NOTE", NULL};

static const char *table_text(struct sw_arena *arena, bool is_coloured, size_t columns)
{
    struct ks_table *table = ks_table_new(arena, heads);
    const struct ks_cell first[] = {
        {"a-long-name", KS_PLAIN}, {"██ 1/1", KS_GREEN}, {"", KS_PLAIN}};
    const struct ks_cell second[] = {
        {"b", KS_PLAIN}, {"-", KS_PLAIN}, {"two\nlines\033[H", KS_RED}};
    struct sw_buf out;

    ks_table_add(table, first);
    ks_table_add(table, second);
    assert_int_equal(ks_table_rows(table), 2);
    sw_buf_init(&out, SIZE_MAX);
    ks_table_print(table, is_coloured, columns, &out);
    const char *text = sw_arena_strdup(arena, out.bytes);
    sw_buf_done(&out);
    return text;
}

TEST(prints_a_table_without_control_characters_and_trailing_spaces)
{
    struct sw_arena *arena = sw_arena_new(0);

    assert_string_equal(table_text(arena, false, 0), "NAME          BAR      NOTE\n"
                                                     "a-long-name   ██ 1/1\n"
                                                     "b             -        two lines [H\n");
    sw_arena_free(arena);
}

TEST(cuts_the_lines_of_a_table)
{
    struct sw_arena *arena = sw_arena_new(0);

    assert_string_equal(table_text(arena, false, 15), "NAME          B\n"
                                                      "a-long-name   █\n"
                                                      "b             -\n");
    sw_arena_free(arena);
}

TEST(colours_cells_and_not_the_space_between)
{
    struct sw_arena *arena = sw_arena_new(0);

    assert_non_null(strstr(table_text(arena, true, 0), "\na-long-name   \033[32m██ 1/1\033[0m\n"));
    sw_arena_free(arena);
}

static void assert_output(const char *json, const char *as_json, const char *as_yaml)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *value;
    struct sw_buf out;

    assert_int_equal(sw_json_parse(arena, json, strlen(json), &value, NULL), 0);
    sw_buf_init(&out, SIZE_MAX);
    ks_put("json", value, &out);
    assert_string_equal(out.bytes, as_json);
    sw_buf_clear(&out);
    ks_put("yaml", value, &out);
    assert_string_equal(out.bytes, as_yaml);
    sw_buf_done(&out);
    sw_arena_free(arena);
}

TEST(writes_json_for_people_and_yaml)
{
    assert_output("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[],\"e\":\"x, {y}: \\\"z\\\"\"}",
                  "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": {},\n"
                  "  \"d\": [],\n  \"e\": \"x, {y}: \\\"z\\\"\"\n}\n",
                  "a:\n- 1\n- b: null\nc: {}\nd: []\ne: 'x, {y}: \"z\"'\n");
}

TEST(quotes_what_yaml_would_take_for_something_else)
{
    assert_output(
        "{\"a\":\"true\",\"b\":\"1.0\",\"c\":\"No\",\"d\":\"\",\"e\":\"2030-01-01T00:00:00Z\","
        "\"f\":\"plain text\",\"g\":\"~\",\"h\":true,\"i\":\"é\"}",
        "{\n  \"a\": \"true\",\n  \"b\": \"1.0\",\n  \"c\": \"No\",\n  \"d\": \"\",\n"
        "  \"e\": \"2030-01-01T00:00:00Z\",\n  \"f\": \"plain text\",\n  \"g\": \"~\",\n"
        "  \"h\": true,\n  \"i\": \"é\"\n}\n",
        "a: \"true\"\nb: \"1.0\"\nc: \"No\"\nd: \"\"\ne: \"2030-01-01T00:00:00Z\"\n"
        "f: plain text\ng: \"~\"\nh: true\ni: é\n");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("text", shows_durations_as_kubectl_does),
        CASE("text", draws_a_bar_that_is_full_only_at_the_end),
        CASE("text", cuts_between_characters),
        CASE("table", prints_a_table_without_control_characters_and_trailing_spaces),
        CASE("table", cuts_the_lines_of_a_table),
        CASE("table", colours_cells_and_not_the_space_between),
        CASE("output", writes_json_for_people_and_yaml),
        CASE("output", quotes_what_yaml_would_take_for_something_else),
    };
    return RUN(tests);
}
