/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query templates: what placeholders become, and what is said of those that are wrong.
 */
#include <errno.h>

#include "../test.h"
#include "template.h"

static const struct sw_label variables[] = {{"a-b", "{{ name }}"}, {"status", "5.."}, {"x.y", ""}};

static const struct step_template_model model = {
    .name = "web",
    .namespace_ = "shop",
    .target = "web-target",
    .service = "web-service",
    .ingress = "web-ingress",
    .route = "web-route",
    .interval = "1m",
    .variables = {variables, 3},
};

static void assert_renders(const char *query, const char *want)
{
    struct sw_arena *arena = sw_arena_new(0);
    const char *text = NULL;
    const char *why = NULL;

    if (step_template_render(query, &model, arena, &text, &why))
        fail_msg("%s: %s", query, why);
    assert_string_equal(text, want);
    sw_arena_free(arena);
}

static void assert_refused(const char *query, const char *want)
{
    struct sw_arena *arena = sw_arena_new(0);
    const char *text = NULL;
    const char *why = NULL;

    assert_int_equal(step_template_render(query, &model, arena, &text, &why), -EINVAL);
    assert_null(text);
    assert_non_null(strstr(why, want));
    sw_arena_free(arena);
}

TEST(fills_in_every_placeholder)
{
    assert_renders("{{ name }}|{{namespace}}|{{ target}}|{{service }}|{{\tingress\n}}|{{ route "
                   "}}|{{ interval }}",
                   "web|shop|web-target|web-service|web-ingress|web-route|1m");
    assert_renders("", "");
    assert_renders("up", "up");
    assert_renders("{{ name }}", "web");
}

TEST(leaves_the_braces_of_promql_alone)
{
    assert_renders("sum(rate(r{ns=\"{{ namespace }}\",code!~\"5..\"}[{{ interval }}])) by (le)",
                   "sum(rate(r{ns=\"shop\",code!~\"5..\"}[1m])) by (le)");
    assert_renders("{a=\"}}\"}", "{a=\"}}\"}");
    assert_renders("x{ {{ name }} }", "x{ web }");
    assert_refused("x{{{ name }}}", "{{ { name }} is unknown"); /* as in Go */
}

TEST(fills_in_variables_once)
{
    assert_renders("{{ variables.status }}", "5..");
    assert_renders("{{ variables.a-b }}", "{{ name }}");
    assert_renders("{{ variables.x.y }}", "");
    assert_renders("{{ index variables \"status\" }}{{index variables \"a-b\"}}", "5..{{ name }}");
}

TEST(takes_white_space_away_where_a_trim_mark_says_so)
{
    assert_renders("a \n {{- name -}} \t b", "awebb");
    assert_renders("a {{- name }} b", "aweb b");
    assert_renders("a {{ name -}} b", "a webb");
    assert_renders("{{ name -}} {{- name }}", "webweb");
    assert_renders(" {{- name -}} ", "web");
}

TEST(leaves_comments_out)
{
    assert_renders("a{{/* of }} x */}}b", "ab");
    assert_renders("a {{- /* x */ -}} b", "ab");
    assert_refused("a{{/* never }} ends", "never closed");
}

TEST(names_the_placeholder_that_is_unknown)
{
    assert_refused("up{a=\"{{ pod }}\"}", "{{ pod }} is unknown; known are name, namespace");
    assert_refused("{{ }}", "is unknown");
    assert_refused("{{ -}}", "is unknown");
    assert_refused("{{-}}", "{{ - }} is unknown");
    assert_refused("{{ name | upper }}", "{{ name | upper }} is unknown");
    assert_refused("{{ name-}}", "{{ name- }} is unknown");
    assert_refused("{{-name }}", "{{ -name }} is unknown");
    assert_refused("{{ Name }}", "{{ Name }} is unknown");
    assert_refused("{{ names }}", "{{ names }} is unknown");
    assert_refused("{{ variables }}", "{{ variables }} is unknown");
    assert_refused("{{ variables. }}", "{{ variables. }} is unknown");
    assert_refused("{{ index }}", "{{ index }} is unknown");
    assert_refused("{{ index variables }}", "is unknown");
    assert_refused("{{ index variables \"a\" \"b\" }}", "is unknown");
    assert_refused("{{ index name \"a\" }}", "is unknown");
}

TEST(names_the_variable_that_is_missing)
{
    assert_refused("{{ variables.statu }}", "templateVariables has no \"statu\"");
    assert_refused("{{ variables.status2 }}", "templateVariables has no \"status2\"");
    assert_refused("{{ index variables \"X\" }}", "templateVariables has no \"X\"");
}

TEST(says_where_a_placeholder_begins_that_never_ends)
{
    assert_refused("up{{ name }", "the {{ at byte 3 is never closed");
    assert_refused("{{ name }}{{", "the {{ at byte 11 is never closed");
}

TEST(does_not_grow_beyond_its_limit)
{
    const struct sw_label long_one = {"long", NULL};
    struct sw_label variable = long_one;
    struct step_template_model big = model;
    struct sw_arena *arena = sw_arena_new(0);
    const char *text = NULL;
    const char *why = NULL;
    char *value = sw_arena_alloc(arena, STEP_QUERY_LIMIT + 2);

    memset(value, 'x', STEP_QUERY_LIMIT);
    variable.value = value;
    big.variables = (struct sw_labels){&variable, 1};
    assert_int_equal(step_template_render("{{ variables.long }}", &big, arena, &text, &why), 0);
    assert_int_equal(strlen(text), STEP_QUERY_LIMIT);
    assert_int_equal(step_template_render("{{ variables.long }}.", &big, arena, &text, &why),
                     -EINVAL);
    assert_non_null(strstr(why, "longer than 65536 bytes"));
    assert_int_equal(
        step_template_render("{{ variables.long }}{{ variables.long }}", &big, arena, &text, &why),
        -EINVAL);
    sw_arena_free(arena);
}

TEST(reads_every_beginning_of_a_query)
{
    static const char whole[] = "a {{- name -}} {{ index variables \"status\" }}{{/* x */}}{{ y }}";
    struct sw_arena *arena = sw_arena_new(0);

    for (size_t len = 0; len < sizeof(whole); len++) {
        const char *text = NULL;
        const char *why = NULL;
        const char *query = sw_arena_strndup(arena, whole, len);
        int code = step_template_render(query, &model, arena, &text, &why);
        assert_true(code == 0 ? text && !why : code == -EINVAL && !text && why);
    }
    sw_arena_free(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("template", fills_in_every_placeholder),
        CASE("template", leaves_the_braces_of_promql_alone),
        CASE("template", fills_in_variables_once),
        CASE("template", takes_white_space_away_where_a_trim_mark_says_so),
        CASE("template", leaves_comments_out),
        CASE("template", names_the_placeholder_that_is_unknown),
        CASE("template", names_the_variable_that_is_missing),
        CASE("template", says_where_a_placeholder_begins_that_never_ends),
        CASE("template", does_not_grow_beyond_its_limit),
        CASE("template", reads_every_beginning_of_a_query),
    };
    return RUN(tests);
}
