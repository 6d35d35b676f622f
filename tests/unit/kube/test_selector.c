/* SPDX-License-Identifier: Apache-2.0 */
/* Label selectors in both forms. */
#include "test.h"

#include <errno.h>

#include <slipway/selector.h>

#include "base/util.h"

static struct sw_selector *from_json(const char *json)
{
    struct sw_selector *selector = NULL;
    char why[256] = "";
    int code = sw_selector_parse(json, strlen(json), &selector, why, sizeof(why));
    if (code) {
        fail_msg("%s: %s", json, why);
    }
    return selector;
}

static struct sw_selector *from_text(const char *text)
{
    struct sw_selector *selector = NULL;
    char why[256] = "";
    int code = sw_selector_parse_text(text, &selector, why, sizeof(why));
    if (code) {
        fail_msg("%s: %s", text, why);
    }
    return selector;
}

static void check_text(struct sw_selector *selector, const char *want)
{
    char *text = sw_selector_text(selector);
    assert_string_equal(text, want);
    free(text);
    sw_selector_free(selector);
}

TEST(writes_json_in_canonical_text)
{
    static const struct {
        const char *json, *text;
    } known[] = {
        {"{}", ""},
        {"{\"matchLabels\":null,\"matchExpressions\":null}", ""},
        {"{\"matchLabels\":{},\"matchExpressions\":[]}", ""},
        {"{\"matchLabels\":{\"b\":\"2\",\"a\":\"1\"}}", "a=1,b=2"},
        {"{\"matchLabels\":{\"a\":\"\"}}", "a="},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"y\",\"x\",\"y\"]}"
         "]}",
         "a in (x,y)"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"x\"]}],"
         "\"matchLabels\":{\"a\":\"x\"}}",
         "a=x"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"y\",\"\"]},"
         "{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"z\"]}]}",
         "a notin (,y),a!=z"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"},"
         "{\"key\":\"example.com/b\",\"operator\":\"DoesNotExist\",\"values\":[]}]}",
         "a,!example.com/b"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(known); i++) {
        check_text(from_json(known[i].json), known[i].text);
        check_text(from_text(known[i].text), known[i].text); /* and it is read as it is written */
    }
}

TEST(reads_text_in_every_form)
{
    static const struct {
        const char *text, *canonical;
    } known[] = {
        {"", ""},
        {"  ", ""},
        {"a=b,c in (d,e),f notin (g),h,!i", "a=b,c in (d,e),f!=g,h,!i"},
        {"a==b", "a=b"},
        {"a!=b", "a!=b"},
        {" a = b , ! c ", "a=b,!c"},
        {"a in(b)", "a=b"},
        {"a\tin\n( b , c )", "a in (b,c)"},
        {"a in (b,,c)", "a in (,b,c)"},
        {"a in (,)", "a="},
        {"a=", "a="},
        {"a=,b", "a=,b"},
        {"in in (in)", "in=in"},
        {"notin", "notin"},
        {"z,y,x,y", "x,y,z"},
        {"example.com/A_b-c.d=E_f-g.h", "example.com/A_b-c.d=E_f-g.h"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(known); i++) {
        check_text(from_text(known[i].text), known[i].canonical);
    }
}

static void refuses_text(const char *text, const char *words)
{
    struct sw_selector *selector = NULL;
    char why[256] = "";
    if (sw_selector_parse_text(text, &selector, why, sizeof(why)) != -EINVAL || selector) {
        fail_msg("%s was accepted", text);
    }
    if (!strstr(why, words)) {
        fail_msg("%s\nsays: %s\nnot:  %s", text, why, words);
    }
}

static void refuses_json(const char *json, const char *words)
{
    struct sw_selector *selector = NULL;
    char why[256] = "";
    if (sw_selector_parse(json, strlen(json), &selector, why, sizeof(why)) != -EINVAL || selector) {
        fail_msg("%s was accepted", json);
    }
    if (!strstr(why, words)) {
        fail_msg("%s\nsays: %s\nnot:  %s", json, why, words);
    }
}

TEST(says_what_is_wrong_with_text)
{
    refuses_text(",", "expected a label key, found \",\"");
    refuses_text("a,", "expected a label key, found the end");
    refuses_text("!", "expected a label key, found the end");
    refuses_text("!a=b", "expected a comma, found \"=b\"");
    refuses_text("a b", "expected =, ==, !=, in, notin or ,, found \"b\"");
    refuses_text("a>1", "expected =, ==, !=, in, notin or ,");
    refuses_text("a in", "expected (, found the end");
    refuses_text("a in b", "expected (, found \"b\"");
    refuses_text("a in ()", "a: in and notin want at least one value");
    refuses_text("a in (b", "expected , or ), found the end");
    refuses_text("a in (b c)", "expected , or ), found \"c)\"");
    refuses_text("a=b=c", "expected a comma, found \"=c\"");
    refuses_text("-a", "\"-a\" is no label key");
    refuses_text("a=-b", "a: \"-b\" is no label value");
    refuses_text("a/b/c", "\"a/b/c\" is no label key");
    refuses_text("/a", "is no label key");
    refuses_text("a/", "is no label key");
    refuses_text("A.com/a", "is no label key");
    refuses_text("a..b/c", "is no label key");
    refuses_text("a-.b/c", "is no label key");
    refuses_text("\xc3\xa9", "\"?\?\" is no label key");
}

TEST(says_what_is_wrong_with_json)
{
    refuses_json("", "not JSON");
    refuses_json("null", "a selector is an object");
    refuses_json("[]", "a selector is an object");
    refuses_json("{\"matchlabels\":{\"a\":\"b\"}}", "the selector: unknown member \"matchlabels\"");
    refuses_json("{\"matchLabels\":[]}", "matchLabels: expected an object");
    refuses_json("{\"matchLabels\":{\"a\":1}}", "matchLabels: the value of a is no string");
    refuses_json("{\"matchLabels\":{\"a b\":\"c\"}}", "matchLabels: \"a b\" is no label key");
    refuses_json("{\"matchLabels\":{\"a\":\"b \"}}", "matchLabels: \"b \" is no label value");
    refuses_json("{\"matchExpressions\":{}}", "matchExpressions: expected an array");
    refuses_json("{\"matchExpressions\":[1]}", "matchExpressions[0]: expected an object");
    refuses_json("{\"matchExpressions\":[{}]}", "matchExpressions[0]: \"\" is no label key");
    refuses_json("{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"},{\"key\":\"a\"}]}",
                 "matchExpressions[1].operator: \"\" is none of In, NotIn, Exists, DoesNotExist");
    refuses_json("{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"in\",\"values\":[\"b\"]}]}",
                 "operator: \"in\" is none of");
    refuses_json("{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Gt\",\"values\":[\"1\"]}]}",
                 "operator: \"Gt\" is none of");
    refuses_json("{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}",
                 "matchExpressions[0].values: In and NotIn want at least one");
    refuses_json("{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[]}]}",
                 "In and NotIn want at least one");
    refuses_json(
        "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\",\"values\":[\"b\"]}]}",
        "Exists and DoesNotExist allow none");
    refuses_json("{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":\"b\"}]}",
                 "values: expected an array");
    refuses_json(
        "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\",null]}]}",
        "values: expected strings");
    refuses_json("{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b!\"]}]}",
                 "matchExpressions[0]: \"b!\" is no label value");
    refuses_json("{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\",\"value\":\"b\"}]}",
                 "matchExpressions[0]: unknown member \"value\"");
}

TEST(knows_how_long_a_key_and_a_value_may_be)
{
    for (int name = 62; name <= 64; name++) {
        char *text = sw_asprintf("%0*d=%0*d", name, 1, 63, 1);
        struct sw_selector *selector = NULL;
        char why[256];
        assert_int_equal(sw_selector_parse_text(text, &selector, why, sizeof(why)),
                         name <= 63 ? 0 : -EINVAL);
        sw_selector_free(selector);
        sw_free(text);
        selector = NULL;
        text = sw_asprintf("%0253d/%063d!=%0*d", 1, 1, name, 1);
        assert_int_equal(sw_selector_parse_text(text, &selector, why, sizeof(why)),
                         name <= 63 ? 0 : -EINVAL);
        sw_selector_free(selector);
        sw_free(text);
    }
    char *text = sw_asprintf("%0254d/a", 1);
    refuses_text(text, "is no label key");
    sw_free(text);
}

TEST(matches_as_kubernetes_does)
{
    static const struct sw_label at[] = {{"app", "web"}, {"empty", ""}, {"tier", "front"}};
    static const struct sw_labels labels = {at, 3};
    static const struct sw_labels none = {NULL, 0};
    static const struct {
        const char *text;
        bool matches, matches_none;
    } known[] = {
        {"", true, true},
        {"app=web", true, false},
        {"app=db", false, false},
        {"app=", false, false},
        {"empty=", true, false},
        {"missing=", false, false},
        {"app!=web", false, true},
        {"app!=db", true, true},
        {"missing!=x", true, true},
        {"app in (db,web)", true, false},
        {"app in (db,dc)", false, false},
        {"app notin (db,web)", false, true},
        {"missing notin (a,b)", true, true},
        {"app", true, false},
        {"empty", true, false},
        {"missing", false, false},
        {"!app", false, true},
        {"!missing", true, true},
        {"app=web,tier=front", true, false},
        {"app=web,tier=back", false, false},
        {"app=web,app=db", false, false},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(known); i++) {
        struct sw_selector *selector = from_text(known[i].text);
        if (sw_selector_matches(selector, &labels) != known[i].matches ||
            sw_selector_matches(selector, &none) != known[i].matches_none) {
            fail_msg("%s", known[i].text);
        }
        sw_selector_free(selector);
    }
    assert_false(sw_selector_matches(NULL, &labels));
    assert_false(sw_selector_matches(NULL, &none));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("selector", writes_json_in_canonical_text),
        CASE("selector", reads_text_in_every_form),
        CASE("selector", says_what_is_wrong_with_text),
        CASE("selector", says_what_is_wrong_with_json),
        CASE("selector", knows_how_long_a_key_and_a_value_may_be),
        CASE("selector", matches_as_kubernetes_does),
    };
    return RUN(tests);
}
