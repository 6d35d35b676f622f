/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as a tree with lines, its bounds, and suggestions for mistyped words. */
#include "base/yaml.h"

#include <slipway/arena.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/util.h"
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

static const struct sw_yaml *parse(const char *text)
{
    const struct sw_yaml *root = NULL;
    struct sw_error error = {0};
    if (sw_yaml_parse(arena, "f", text, strlen(text), &root, &error)) {
        fail_msg("%s: %s", text, error.text);
    }
    return root;
}

static void is_refused(const char *text, size_t len, const char *wanted)
{
    const struct sw_yaml *root = NULL;
    struct sw_error error = {0};
    assert_int_equal(sw_yaml_parse(arena, "f", text, len, &root, &error), SW_E_SYNTAX);
    assert_null(root);
    assert_string_equal(error.text, wanted);
}

TEST(knows_lines_and_paths)
{
    const struct sw_yaml *root = parse("# comment\n"
                                       "a: 1\n"
                                       "\n"
                                       "b:\n"
                                       "  c:\n"
                                       "    - x\n"
                                       "    - d: |\n"
                                       "        text\n"
                                       "      e: 2\n");
    assert_int_equal(root->line, 2);
    const struct sw_yaml *b = sw_yaml_get(root, "b");
    assert_int_equal(b->key_line, 4);
    assert_int_equal(b->line, 5);
    const struct sw_yaml *c = sw_yaml_get(b, "c");
    assert_int_equal(c->count, 2);
    const struct sw_yaml *e = sw_yaml_get(c->last, "e");
    assert_int_equal(e->line, 9);
    assert_string_equal(e->text, "2");
    assert_string_equal(sw_yaml_path(arena, e, NULL), "b.c[1].e");
    assert_string_equal(sw_yaml_path(arena, c->last, "new"), "b.c[1].new");
    assert_string_equal(sw_yaml_path(arena, c->first, NULL), "b.c[0]");
    assert_string_equal(sw_yaml_path(arena, root, NULL), "");
    assert_string_equal(sw_yaml_path(arena, root, "x"), "x");
    assert_string_equal(sw_yaml_path(arena, NULL, "x"), "x");
    assert_string_equal(sw_yaml_get(c->last, "d")->text, "text\n");
    assert_null(sw_yaml_get(b, "a"));
}

TEST(takes_nothing_for_no_document)
{
    static const char *const empty[] = {"",  "\n\n", "# only\n",   "---\n",
                                        "~", "null", "---\n...\n", "\xef\xbb\xbf"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(empty); i++) {
        assert_null(parse(empty[i]));
    }
    assert_int_equal(parse("{}")->type, SW_YAML_MAPPING);
    assert_int_equal(parse("''")->type, SW_YAML_SCALAR);
}

TEST(tells_nothing_from_text)
{
    const struct sw_yaml *root = parse("a:\nb: ~\nc: Null\nd: ''\ne: '~'\nf: []\n");
    assert_true(sw_yaml_is_null(sw_yaml_get(root, "a")));
    assert_int_equal(sw_yaml_get(root, "a")->line, 1);
    assert_true(sw_yaml_is_null(sw_yaml_get(root, "b")));
    assert_true(sw_yaml_is_null(sw_yaml_get(root, "c")));
    assert_false(sw_yaml_is_null(sw_yaml_get(root, "d")));
    assert_false(sw_yaml_is_null(sw_yaml_get(root, "e")));
    assert_false(sw_yaml_is_null(sw_yaml_get(root, "f")));
}

TEST(refuses_what_configurations_do_not_need)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"a: &x 1\nb: *x\n", "f:2: b: an alias (*) is not supported; write the value out"},
        {"a: [1, *x]\n", "f:1: a[1]: an alias (*) is not supported; write the value out"},
        {"a: !!str 1\n", "f:1: a: a tag (!) is not supported"},
        {"a:\n  - !x {}\n", "f:2: a[0]: a tag (!) is not supported"},
        {"a: 1\na: 2\n", "f:2: a: set twice, first on line 1"},
        {"a:\n  b: 1\n  c: 1\n  b: 2\n", "f:4: a.b: set twice, first on line 2"},
        {"a: 1\n---\nb: 2\n", "f:2: a second document; a file holds one"},
        {"a: 1\n---\n", "f:2: a second document; a file holds one"},
        {"? [x]\n: 1\n", "f:1: a key must be a word"},
        {"? {x: 1}\n: 1\n", "f:1: a key must be a word"},
        {"a: \"x\\0y\"\n", "f:1: a: contains a NUL character"},
        {"\"x\\0y\": 1\n", "f:1: a key contains a NUL character"},
        {"b:\n  <<: *x\n", "f:2: b.<<: an alias (*) is not supported; write the value out"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        is_refused(cases[i].text, strlen(cases[i].text), cases[i].wanted);
    }
}

TEST(says_what_is_not_yaml)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"a: b: c\n", "f:1: not YAML: mapping values are not allowed in this context"},
        {"x: 1\na:\n\tb: 1\n", "f:3: YAML allows no tab here; indent with spaces"},
        {"x: 1\na:\n  \tb: 1\n", "f:3: YAML allows no tab here; indent with spaces"},
        {"a: [1, 2\nb: 3\n", "f:2: not YAML: did not find expected ',' or ']', while parsing a "
                             "flow sequence (from line 1)"},
        {"a: 1\n b: 2\n", "f:2: not YAML: mapping values are not allowed in this context"},
        {"a: \"x\n", "f:1: not YAML: found unexpected end of stream, while scanning a quoted "
                     "scalar (from line 1)"},
        {"a: 1\nb: \"\xff\"\n", "f:2: not UTF-8 text: invalid leading UTF-8 octet"},
        {"a: 1\n\x01: 2\n", "f:2: not UTF-8 text: control characters are not allowed"},
        {"a:\n  - [1,\n", "f:2: not YAML: did not find expected node content, while parsing a flow "
                          "node (from line 2)"},
        {"a: [", "f:1: not YAML: did not find expected node content, while parsing a flow node "
                 "(from line 1)"},
        {"a: 1\r\nb: 2\r\n\x02\r\n", "f:3: not UTF-8 text: control characters are not allowed"},
        {"a: @x\n", "f:1: not YAML: found character that cannot start any token, while scanning "
                    "for the next token (from line 1)"},
        {"%YAML 3.0\n---\na: 1\n", "f:1: not YAML: found incompatible YAML document"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        is_refused(cases[i].text, strlen(cases[i].text), cases[i].wanted);
    }
    is_refused("a: \0b", 5, "f:1: not UTF-8 text: control characters are not allowed");
}

static void repeat(char *text, size_t size, const char *piece)
{
    size_t len = strlen(piece);
    for (size_t at = 0; at + len < size; at += len) {
        memcpy(text + at, piece, len + 1);
    }
}

TEST(bounds_nesting_and_number)
{
    static char text[1024 * 1024];
    struct sw_error error = {0};
    const struct sw_yaml *root;
    static const char *const deep[] = {"[", "{a: ", "- ", "[{a: "};
    for (size_t i = 0; i < SW_ARRAY_SIZE(deep); i++) {
        repeat(text, sizeof(text), deep[i]);
        assert_int_equal(sw_yaml_parse(arena, "f", text, strlen(text), &root, &error), SW_E_SYNTAX);
        assert_non_null(strstr(error.text, "nested too deeply"));
    }
    repeat(text, sizeof(text), "- 1\n");
    assert_int_equal(sw_yaml_parse(arena, "f", text, strlen(text), &root, &error), SW_E_SYNTAX);
    assert_string_equal(error.text, "f:10000: [9999]: too many values in one file");
    size_t len = 0;
    for (unsigned i = 0; len < sizeof(text) - 32; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "k%u: 1\n", i);
    }
    assert_int_equal(sw_yaml_parse(arena, "f", text, len, &root, &error), SW_E_SYNTAX);
    assert_string_equal(error.text, "f:10000: k9999: too many values in one file");
    assert_int_equal(
        parse("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]")->count, 1);
}

/* Cut anywhere: a tree or a message, and no byte beyond the end is read. */
TEST(survives_a_text_cut_at_any_place)
{
    static const char text[] = "# c\na: 'x y'\nb: [1, \"2\\n\", {c: d}]\ne: |\n  f\n  g\n"
                               "h: \xc3\xa4\n? i\n: >-\n  j\n...\n";
    for (size_t len = 0; len < sizeof(text); len++) {
        char *cut = malloc(len ? len : 1);
        memcpy(cut, text, len);
        const struct sw_yaml *root = NULL;
        struct sw_error error = {0};
        int rc = sw_yaml_parse(arena, "f", cut, len, &root, &error);
        assert_true(rc == 0 || (rc == SW_E_SYNTAX && strncmp(error.text, "f:", 2) == 0));
        free(cut);
    }
}

TEST(shows_text_harmlessly)
{
    assert_string_equal(sw_yaml_show(arena, "plain"), "plain");
    assert_string_equal(sw_yaml_show(arena, "a\nb\tc\x1b[31m\x7f\xff"), "a b c?[31m??");
    assert_string_equal(sw_yaml_show(arena, "123456789012345678901234567890123456789012345678"),
                        "123456789012345678901234567890123456789012345678");
    assert_string_equal(sw_yaml_show(arena, "1234567890123456789012345678901234567890123456789"),
                        "123456789012345678901234567890123456789012345678...");
    assert_string_equal(
        sw_yaml_show(arena, "12345678901234567890123456789012345678901234567\xc3\xa4"),
        "12345678901234567890123456789012345678901234567...");
}

static const char *nearest(const char *word)
{
    static const char *const known[] = {"port", "bindAddress", "timeout", "logLevel", "a", "on"};
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < SW_ARRAY_SIZE(known); i++) {
        sw_nearest(word, known[i], &best, &distance);
    }
    return best ? best : "";
}

TEST(suggests_the_nearest_word)
{
    assert_string_equal(nearest("prt"), "port");
    assert_string_equal(nearest("prot"), "port");
    assert_string_equal(nearest("Port"), "port");
    assert_string_equal(nearest("bind-address"), "bindAddress");
    assert_string_equal(nearest("bind_adress"), "bindAddress");
    assert_string_equal(nearest("log-levle"), "logLevel");
    assert_string_equal(nearest("time"), "");
    assert_string_equal(nearest("timeouts"), "timeout");
    assert_string_equal(nearest("b"), "");
    assert_string_equal(nearest("in"), "");
    assert_string_equal(nearest(""), "");
    assert_string_equal(nearest("--"), "");
    char text[200];
    memset(text, 'x', sizeof(text));
    text[199] = '\0';
    assert_string_equal(nearest(text), "");
}

#define IN_ARENA(subject, does_this)                                                    \
    {                                                                                   \
        .name = subject ": " #does_this, .test_func = (does_this), .setup_func = setup, \
        .teardown_func = teardown                                                       \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        IN_ARENA("yaml", knows_lines_and_paths),
        IN_ARENA("yaml", takes_nothing_for_no_document),
        IN_ARENA("yaml", tells_nothing_from_text),
        IN_ARENA("yaml", refuses_what_configurations_do_not_need),
        IN_ARENA("yaml", says_what_is_not_yaml),
        IN_ARENA("yaml", bounds_nesting_and_number),
        IN_ARENA("yaml", survives_a_text_cut_at_any_place),
        IN_ARENA("yaml", shows_text_harmlessly),
        CASE("nearest", suggests_the_nearest_word),
    };
    return RUN(tests);
}
