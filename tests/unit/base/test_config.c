/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: what is loaded, and what each mistake is answered with. */
#include "base/config.h"

#include <errno.h>

#include <slipway/config.h>

#include "base/error.h"
#include "base/file.h"
#include "base/util.h"
#include "test.h"

enum colour { RED = 3, BLUE = 5 };

static const cyaml_strval_t colours[] = {{"red", RED}, {"blue", BLUE}};

struct hook {
    uint16_t port;
    uint64_t timeout_ms;
    bool has_tls;
    char *host;
};

struct config {
    struct hook hook;
    struct hook *spare;
    int8_t small;
    uint8_t byte;
    int64_t large;
    uint64_t positive;
    int32_t bounded;
    bool is_on;
    char *name;
    char code[8];
    enum colour colour;
    uint32_t colours;
    double factor;
    char **words;
    unsigned words_count;
    struct hook *hooks;
    unsigned hooks_count;
    int pair[2];
    uint64_t pause_ms;
    uint64_t delay_ms;
    uint8_t bits;
};

static const cyaml_bitdef_t bits[] = {{"low", 0, 4}, {"high", 4, 4}};

static const cyaml_schema_field_t hook_fields[] = {
    SW_CONFIG_INT("port", CYAML_FLAG_DEFAULT, struct hook, port, 1, 65535, 0),
    SW_CONFIG_DURATION("timeout", CYAML_FLAG_OPTIONAL, struct hook, timeout_ms, 100, 90000, 10000),
    SW_CONFIG_BOOL("tls", CYAML_FLAG_OPTIONAL, struct hook, has_tls, true),
    CYAML_FIELD_STRING_PTR("host", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct hook, host, 1,
                           CYAML_UNLIMITED),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t word = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 10),
};
static const cyaml_schema_value_t hook = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct hook, hook_fields),
};
static const cyaml_schema_value_t number = {
    CYAML_VALUE_INT(CYAML_FLAG_DEFAULT, int),
};

static const cyaml_schema_field_t fields[] = {
    CYAML_FIELD_MAPPING("hook", CYAML_FLAG_OPTIONAL, struct config, hook, hook_fields),
    CYAML_FIELD_MAPPING_PTR("spare", CYAML_FLAG_POINTER_NULL | CYAML_FLAG_OPTIONAL, struct config,
                            spare, hook_fields),
    CYAML_FIELD_INT("small", CYAML_FLAG_OPTIONAL, struct config, small),
    CYAML_FIELD_UINT("byte", CYAML_FLAG_OPTIONAL, struct config, byte),
    CYAML_FIELD_INT("large", CYAML_FLAG_OPTIONAL, struct config, large),
    CYAML_FIELD_UINT("positive", CYAML_FLAG_OPTIONAL, struct config, positive),
    SW_CONFIG_INT("bounded", CYAML_FLAG_OPTIONAL, struct config, bounded, -5, INT64_MAX, -2),
    CYAML_FIELD_BOOL("is-on", CYAML_FLAG_OPTIONAL, struct config, is_on),
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config, name, 0,
                           CYAML_UNLIMITED),
    CYAML_FIELD_STRING("code", CYAML_FLAG_OPTIONAL, struct config, code, 2),
    CYAML_FIELD_ENUM("colour", CYAML_FLAG_OPTIONAL, struct config, colour, colours,
                     SW_ARRAY_SIZE(colours)),
    CYAML_FIELD_FLAGS("colours", CYAML_FLAG_OPTIONAL, struct config, colours, colours,
                      SW_ARRAY_SIZE(colours)),
    CYAML_FIELD_FLOAT("factor", CYAML_FLAG_OPTIONAL, struct config, factor),
    CYAML_FIELD_SEQUENCE("words", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config, words,
                         &word, 1, 3),
    CYAML_FIELD_SEQUENCE("hooks", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config, hooks,
                         &hook, 0, CYAML_UNLIMITED),
    CYAML_FIELD_SEQUENCE_FIXED("pair", CYAML_FLAG_OPTIONAL, struct config, pair, &number, 2),
    SW_CONFIG_DURATION("pause", CYAML_FLAG_OPTIONAL, struct config, pause_ms, 3723004, INT64_MAX,
                       3723004),
    SW_CONFIG_DURATION("delay", CYAML_FLAG_OPTIONAL, struct config, delay_ms, 0, INT64_MAX, 0),
    CYAML_FIELD_BITFIELD("bits", CYAML_FLAG_OPTIONAL, struct config, bits, bits,
                         SW_ARRAY_SIZE(bits)),
    CYAML_FIELD_IGNORE("comment", CYAML_FLAG_OPTIONAL),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct config, fields),
};

static struct config *parsed(const char *text)
{
    void *value = NULL;
    struct sw_error error = {0};
    if (sw_config_parse("f", text, strlen(text), &schema, &value, &error)) {
        fail_msg("%s: refused: %s", text, error.text);
    }
    assert_non_null(value);
    return value;
}

static void done(struct config *config)
{
    assert_null(sw_config_free(&schema, config));
}

static void is_refused(const char *text, const char *wanted)
{
    void *value = NULL;
    struct sw_error error = {0};
    int rc = sw_config_parse("f", text, strlen(text), &schema, &value, &error);
    if (rc != SW_E_CONFIG || strcmp(error.text, wanted) != 0) {
        fail_msg("%s\ngot (%d):  %s\nwanted:    %s", text, rc, error.text, wanted);
    }
    assert_null(value);
    assert_int_equal(error.code, SW_E_CONFIG);
}

TEST(loads_every_type)
{
    struct config *c = parsed("hook:\n"
                              "  port: 8443\n"
                              "  timeout: 1m30s\n"
                              "  tls: no\n"
                              "  host: example.org\n"
                              "small: -128\n"
                              "byte: 0xff\n"
                              "large: -9223372036854775808\n"
                              "positive: 18446744073709551615\n"
                              "bounded: 7\n"
                              "is-on: Yes\n"
                              "name: 'some: text'\n"
                              "code: abcdefg\n"
                              "colour: blue\n"
                              "colours: [red, blue]\n"
                              "factor: 2.5e-1\n"
                              "words: [a, bb, ccc]\n"
                              "hooks:\n"
                              "- port: 1\n"
                              "- {port: 2, tls: off, timeout: 100ms}\n"
                              "pair: [4, -5]\n"
                              "comment: {anything: [goes, 1]}\n");
    assert_int_equal(c->hook.port, 8443);
    assert_int_equal(c->hook.timeout_ms, 90000);
    assert_false(c->hook.has_tls);
    assert_string_equal(c->hook.host, "example.org");
    assert_null(c->spare);
    assert_int_equal(c->small, -128);
    assert_int_equal(c->byte, 255);
    assert_true(c->large == INT64_MIN);
    assert_true(c->positive == UINT64_MAX);
    assert_int_equal(c->bounded, 7);
    assert_true(c->is_on);
    assert_string_equal(c->name, "some: text");
    assert_string_equal(c->code, "abcdefg");
    assert_int_equal(c->colour, BLUE);
    assert_int_equal(c->colours, RED | BLUE);
    assert_true(c->factor == 0.25);
    assert_int_equal(c->words_count, 3);
    assert_string_equal(c->words[2], "ccc");
    assert_int_equal(c->hooks_count, 2);
    assert_int_equal(c->hooks[0].port, 1);
    assert_int_equal(c->hooks[0].timeout_ms, 10000);
    assert_true(c->hooks[0].has_tls);
    assert_int_equal(c->hooks[1].port, 2);
    assert_int_equal(c->hooks[1].timeout_ms, 100);
    assert_false(c->hooks[1].has_tls);
    assert_int_equal(c->pair[0], 4);
    assert_int_equal(c->pair[1], -5);
    done(c);
}

TEST(gives_defaults_to_what_is_left_out)
{
    static const char *const empty[] = {"", "\n", "# nothing\n", "---\n", "{}", "~"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(empty); i++) {
        struct config *c = parsed(empty[i]);
        assert_int_equal(c->bounded, -2);
        assert_int_equal(c->hook.timeout_ms, 10000);
        assert_true(c->hook.has_tls);
        assert_null(c->spare);
        assert_null(c->name);
        assert_int_equal(c->words_count, 0);
        done(c);
    }
    struct config *c = parsed("spare:\n  port: 5\n");
    assert_int_equal(c->spare->port, 5);
    assert_int_equal(c->spare->timeout_ms, 10000);
    assert_true(c->spare->has_tls);
    done(c);
    c = parsed("spare:\nhooks: []\n");
    assert_null(c->spare);
    assert_int_equal(c->hooks_count, 0);
    done(c);
    sw_config_free(&schema, NULL);
}

TEST(reads_booleans)
{
    static const char *const words[] = {"true",  "True",  "TRUE",  "yes", "on",
                                        "false", "False", "FALSE", "no",  "off"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(words); i++) {
        char text[64];
        snprintf(text, sizeof(text), "is-on: %s\nhook: {port: 1, tls: %s}\n", words[i], words[i]);
        struct config *c = parsed(text);
        assert_int_equal(c->is_on, i < 5);
        assert_int_equal(c->hook.has_tls, i < 5);
        done(c);
    }
}

TEST(names_the_nearest_of_known_keys)
{
    is_refused("hook:\n  port: 1\n\n  prot: 2\n",
               "f:4: hook.prot: unknown key; did you mean \"port\"?");
    is_refused("is_on: true\n", "f:1: is_on: unknown key; did you mean \"is-on\"?");
    is_refused("hooks:\n- port: 1\n- port: 2\n  zebra: 3\n",
               "f:4: hooks[1].zebra: unknown key; known here: port, timeout, tls, host");
    is_refused("\"a\\nb\": 1\n",
               "f:1: a b: unknown key; known here: hook, spare, small, byte, large, "
               "positive, bounded, is-on, name, code, colour, colours, factor, "
               "words, hooks, pair, pause, delay, bits, comment");
}

TEST(says_what_was_expected)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"hook:\n  port: https\n",
         "f:2: hook.port: expected an integer from 1 to 65535, got \"https\""},
        {"hook:\n  port: 0\n", "f:2: hook.port: expected an integer from 1 to 65535, got \"0\""},
        {"hook:\n  port: 65536\n",
         "f:2: hook.port: expected an integer from 1 to 65535, got \"65536\""},
        {"hook:\n  port: 99999999999999999999\n",
         "f:2: hook.port: expected an integer from 1 to 65535, got \"99999999999999999999\""},
        {"hook:\n  port:\n", "f:2: hook.port: expected an integer from 1 to 65535, got nothing"},
        {"hook:\n  port: [1]\n",
         "f:2: hook.port: expected an integer from 1 to 65535, got a list of 1"},
        {"hook:\n  port: 010\n",
         "f:2: hook.port: expected an integer from 1 to 65535, got \"010\""},
        {"hook:\n  port: ' 5'\n",
         "f:2: hook.port: expected an integer from 1 to 65535, got \" 5\""},
        {"hook: {port: 1, timeout: 5}\n",
         "f:1: hook.timeout: expected a duration from 100ms to 1m30s, got \"5\""},
        {"hook: {port: 1, timeout: 99ms}\n",
         "f:1: hook.timeout: expected a duration from 100ms to 1m30s, got \"99ms\""},
        {"hook: {port: 1, tls: maybe}\n", "f:1: hook.tls: expected true or false, got \"maybe\""},
        {"bounded: -6\n", "f:1: bounded: expected an integer of at least -5, got \"-6\""},
        {"small: 128\n", "f:1: small: expected an integer from -128 to 127, got \"128\""},
        {"small: -129\n", "f:1: small: expected an integer from -128 to 127, got \"-129\""},
        {"byte: 256\n", "f:1: byte: expected an integer from 0 to 255, got \"256\""},
        {"byte: -1\n", "f:1: byte: expected an integer from 0 to 255, got \"-1\""},
        {"large: 9223372036854775808\n",
         "f:1: large: expected an integer, got \"9223372036854775808\""},
        {"large: 1.5\n", "f:1: large: expected an integer, got \"1.5\""},
        {"positive: -1\n", "f:1: positive: expected an integer of at least 0, got \"-1\""},
        {"is-on: 1\n", "f:1: is-on: expected true or false, got \"1\""},
        {"is-on: maybe\n", "f:1: is-on: expected true or false, got \"maybe\""},
        {"is-on:\n", "f:1: is-on: expected true or false, got nothing"},
        {"name: null\n", "f:1: name: expected a text, got nothing"},
        {"name: {a: b}\n", "f:1: name: expected a text, got a mapping"},
        {"name:\n- a\n- b\n", "f:2: name: expected a text, got a list of 2"},
        {"hook: {port: 1, host: ''}\n",
         "f:1: hook.host: expected a text that is not empty, got \"\""},
        {"code: a\n", "f:1: code: expected a text of 2 to 7 bytes, got \"a\""},
        {"code: abcdefgh\n", "f:1: code: expected a text of 2 to 7 bytes, got \"abcdefgh\""},
        {"colour: green\n", "f:1: colour: expected one of \"red\", \"blue\", got \"green\""},
        {"colour: 3\n", "f:1: colour: expected one of \"red\", \"blue\", got \"3\""},
        {"colour: Red\n", "f:1: colour: expected one of \"red\", \"blue\", got \"Red\""},
        {"colours: red\n", "f:1: colours: expected a list of \"red\", \"blue\", got \"red\""},
        {"colours:\n- red\n- 8\n", "f:3: colours[1]: expected one of \"red\", \"blue\", got \"8\""},
        {"factor: abc\n", "f:1: factor: expected a number, got \"abc\""},
        {"factor: nan\n", "f:1: factor: expected a number, got \"nan\""},
        {"factor: 1e999\n", "f:1: factor: expected a number, got \"1e999\""},
        {"words: []\n", "f:1: words: expected a list of 1 to 3, got a list of 0"},
        {"words: [a, b, c, d]\n", "f:1: words: expected a list of 1 to 3, got a list of 4"},
        {"words: a\n", "f:1: words: expected a list of 1 to 3, got \"a\""},
        {"words:\n- a\n-\n", "f:3: words[1]: expected a text of 1 to 10 bytes, got nothing"},
        {"hooks: {}\n", "f:1: hooks: expected a list ([] for none), got a mapping"},
        {"hooks:\n", "f:1: hooks: expected a list ([] for none), got nothing"},
        {"hooks:\n- port: 1\n- port: x\n",
         "f:3: hooks[1].port: expected an integer from 1 to 65535, got \"x\""},
        {"pair: [1]\n", "f:1: pair: expected a list of 2, got a list of 1"},
        {"pair: [1, x]\n",
         "f:1: pair[1]: expected an integer from -2147483648 to 2147483647, got \"x\""},
        {"pause: 1h\n", "f:1: pause: expected a duration of at least 1h2m3s4ms, got \"1h\""},
        {"delay: soon\n", "f:1: delay: expected a duration like 90s or 1m30s, got \"soon\""},
        {"bits: 1\n", "f:1: bits: expected a mapping ({} for an empty one), got \"1\""},
        {"hook:\nsmall: 1\n", "f:1: hook: expected a mapping ({} for an empty one), got nothing"},
        {"hook: 3\n", "f:1: hook: expected a mapping ({} for an empty one), got \"3\""},
        {"[1, 2]\n", "f:1: expected a mapping ({} for an empty one), got a list of 2"},
        {"\nword\n", "f:2: expected a mapping ({} for an empty one), got \"word\""},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        is_refused(cases[i].text, cases[i].wanted);
    }
}

TEST(names_a_missing_key)
{
    is_refused("small: 1\nhook:\n  timeout: 1s\n",
               "f:2: hook.port: missing; expected an integer from 1 to 65535");
    is_refused("\nhook: {}\n", "f:2: hook.port: missing; expected an integer from 1 to 65535");
    is_refused("hooks:\n- port: 1\n- tls: true\n",
               "f:3: hooks[1].port: missing; expected an integer from 1 to 65535");
    static const cyaml_schema_value_t strict = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct hook, hook_fields),
    };
    void *value = NULL;
    struct sw_error error = {0};
    assert_int_equal(sw_config_parse("f", "", 0, &strict, &value, &error), SW_E_CONFIG);
    assert_string_equal(error.text, "f:1: port: missing; expected an integer from 1 to 65535");
}

TEST(passes_mistakes_of_yaml_on)
{
    is_refused("small: 1\nsmall: 2\n", "f:2: small: set twice, first on line 1");
    is_refused("hook:\n\tport: 1\n", "f:2: YAML allows no tab here; indent with spaces");
    is_refused("small: 1\n---\nsmall: 2\n", "f:2: a second document; a file holds one");
    is_refused("name: &a x\ncode: *a\n",
               "f:2: code: an alias (*) is not supported; write the value out");
    is_refused("name: \"\xc0\xaf\"\n", "f:1: not UTF-8 text: invalid length of a UTF-8 sequence");
}

/* What is not looked into before is answered with libcyaml's own words, and a line near by. */
TEST(passes_on_what_only_libcyaml_sees)
{
    struct config *c = parsed("bits: {low: 3, high: 1}\n");
    assert_int_equal(c->bits, 0x13);
    done(c);
    void *value = NULL;
    struct sw_error error = {0};
    static const char text[] = "small: 1\nbits:\n  low: 1\n  middle: 2\n";
    assert_int_equal(sw_config_parse("f", text, strlen(text), &schema, &value, &error),
                     SW_E_CONFIG);
    assert_null(value);
    assert_int_equal(strncmp(error.text, "f:3: ", 5), 0);
    assert_non_null(strstr(error.text, "middle"));
}

TEST(stands_an_alias_bomb)
{
    is_refused("a: &a [x,x,x,x,x,x,x,x,x]\n"
               "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
               "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n",
               "f:2: b[0]: an alias (*) is not supported; write the value out");
}

TEST(limits_the_size)
{
    size_t len = 1024 * 1024 + 1;
    SW_AUTO(char, sw_free) text = sw_malloc(len);
    memset(text, '#', len);
    void *value = NULL;
    struct sw_error error = {0};
    assert_int_equal(sw_config_parse("f", text, len, &schema, &value, &error), SW_E_CONFIG);
    assert_string_equal(error.text, "f:1: larger than 1048576 bytes");
    assert_int_equal(sw_config_parse("f", text, len - 1, &schema, &value, &error), 0);
    sw_config_free(&schema, value);
}

TEST(needs_nobody_to_hear_its_message)
{
    void *value = NULL;
    assert_int_equal(sw_config_parse("f", "x: 1", 4, &schema, &value, NULL), SW_E_CONFIG);
    assert_int_equal(sw_config_parse("f", "\t", 1, &schema, &value, NULL), SW_E_CONFIG);
}

TEST(reads_files)
{
    char *folder = test_folder_new();
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/slipway.yaml", folder);
    SW_AUTO(char, sw_free) absent = sw_asprintf("%s: no such file or directory", path);
    SW_AUTO(char, sw_free)
    wrong = sw_asprintf("%s:2: hook.port: expected an integer from 1 to 65535, got \"x\"", path);
    void *value = NULL;
    struct sw_error error = {0};
    assert_int_equal(sw_config_load(path, &schema, &value, &error), -ENOENT);
    assert_string_equal(error.text, absent);
    test_write_file(path, "hook:\n  port: x\n", 16);
    assert_int_equal(sw_config_load(path, &schema, &value, &error), SW_E_CONFIG);
    assert_string_equal(error.text, wrong);
    test_write_file(path, "hook:\n  port: 7\n", 16);
    assert_int_equal(sw_config_load(path, &schema, &value, &error), 0);
    assert_int_equal(((struct config *)value)->hook.port, 7);
    done(value);
    assert_int_equal(sw_config_load(folder, &schema, &value, &error), SW_E_CONFIG);
    assert_non_null(strstr(error.text, "illegal operation on a directory"));
    test_folder_done(folder);
}

static void expect_blame(const char *path, const char *key, const char *wanted)
{
    struct sw_error error = {.text = "no"};
    sw_config_blame(path, key, &error);
    assert_string_equal(error.text + strlen(path), wanted);
}

TEST(blames_a_key_for_what_no_schema_says)
{
    char *folder = test_folder_new();
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/f", folder);
    static const char text[] = "hook:\n  port: 1\n\n  host: h\nhooks:\n- {port: 1}\n- port: 2\n";
    expect_blame(path, "hook.host", ": hook.host: no");
    test_write_file(path, text, strlen(text));
    expect_blame(path, "hook.host", ":4: hook.host: no");
    expect_blame(path, "hooks[1].port", ":7: hooks[1].port: no");
    expect_blame(path, "hooks[0]", ":6: hooks[0]: no");
    expect_blame(path, "hook.none", ":2: hook.none: no"); /* what is there of it begins there */
    expect_blame(path, "hooks[2]", ":6: hooks[2]: no");
    expect_blame(path, "none", ": none: no");
    test_write_file(path, "a: [", 4);
    expect_blame(path, "a", ": a: no");
    test_folder_done(folder);
}

/* Cut anywhere it is loaded or refused, and nothing leaks. */
TEST(survives_a_text_cut_at_any_place)
{
    static const char text[] = "hook:\n  port: 8443\n  host: example.org\nname: \"a\\n\xc3\xa4\"\n"
                               "words: [a, b]\nhooks:\n- port: 1\n- {port: 2, tls: off}\n"
                               "colours: [red]\nspare:\n  port: 3\n";
    int loaded = 0;
    for (size_t len = 0; len < sizeof(text); len++) {
        char *cut = malloc(len ? len : 1);
        memcpy(cut, text, len);
        void *value = NULL;
        struct sw_error error = {0};
        int rc = sw_config_parse("f", cut, len, &schema, &value, &error);
        assert_true(rc == 0 || rc == SW_E_CONFIG);
        assert_int_equal(strncmp(error.text, "f:", 2) == 0, rc != 0);
        loaded += rc == 0;
        sw_config_free(&schema, value);
        free(cut);
    }
    assert_true(loaded > 10);
}

static void compare(const char *one, const char *other, bool is_same)
{
    struct config *a = parsed(one), *b = parsed(other);
    if (sw_config_is_same(&schema, a, b) != is_same || sw_config_is_same(&schema, b, a) != is_same)
        fail_msg("\"%s\" and \"%s\": wanted %s", one, other, is_same ? "same" : "not the same");
    done(a);
    done(b);
}

TEST(are_the_same_where_they_say_the_same)
{
    static const char *const different[] = {
        "small: 1\n",
        "byte: 1\n",
        "large: 1\n",
        "positive: 1\n",
        "bounded: 1\n",
        "is-on: true\n",
        "name: a\n",
        "name: ab\n",
        "code: ab\n",
        "colour: blue\n",
        "colours: [blue]\n",
        "factor: 0.5\n",
        "words: [a]\n",
        "words: [b]\n",
        "words: [a, b]\n",
        "hooks: [{port: 1}]\n",
        "hooks: [{port: 2}]\n",
        "hooks: [{port: 1, host: a}]\n",
        "hooks: [{port: 1}, {port: 1}]\n",
        "pair: [0, 1]\n",
        "pause: 2h\n",
        "delay: 1s\n",
        "hook: {port: 1}\n",
        "hook: {port: 1, tls: false}\n",
        "hook: {port: 1, timeout: 1s}\n",
        "spare: {port: 1}\n",
        "bits: {low: 1}\n",
        "",
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(different); i++)
        for (size_t j = 0; j < SW_ARRAY_SIZE(different); j++)
            compare(different[i], different[j], i == j);
    compare("small: 1\nlarge: 2\n", "# why\nlarge: 2\n\nsmall: 0x1\n", true);
    compare("delay: 60s\n", "delay: 1m\n", true);
    compare("delay: 0\nbounded: -2\n", "", true);
    compare("hooks: [{port: 1, host: a}]\n", "hooks:\n- host: 'a'\n  port: 1\n  tls: yes\n", true);
    compare("comment: a\n", "comment: b\n", true);
    compare("hooks: []\n", "", true);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("config", loads_every_type),
        CASE("config", gives_defaults_to_what_is_left_out),
        CASE("config", reads_booleans),
        CASE("config", names_the_nearest_of_known_keys),
        CASE("config", says_what_was_expected),
        CASE("config", names_a_missing_key),
        CASE("config", passes_mistakes_of_yaml_on),
        CASE("config", passes_on_what_only_libcyaml_sees),
        CASE("config", stands_an_alias_bomb),
        CASE("config", limits_the_size),
        CASE("config", needs_nobody_to_hear_its_message),
        CASE("config", reads_files),
        CASE("config", blames_a_key_for_what_no_schema_says),
        CASE("config", survives_a_text_cut_at_any_place),
        CASE("config", are_the_same_where_they_say_the_same),
    };
    return RUN(tests);
}
