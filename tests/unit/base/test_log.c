/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines in both forms, what is escaped, where they are cut, and a reader that is too slow. */
#include "base/log.h"

#include <errno.h>
#include <jansson.h>

#include "base/loop.h"
#include "base/utf8.h"
#include "base/util.h"
#include "test.h"

struct scene {
    struct sw_loop *loop;
    struct sw_log_sink *sink;
    struct sw_log log;
    char line[10000];
    int lines;
};

static void on_line(void *arg, const char *line, size_t len)
{
    struct scene *s = arg;
    assert_true(len < sizeof(s->line));
    assert_int_equal(line[len], '\0');
    assert_int_equal(strlen(line), len);
    assert_int_equal(line[len - 1], '\n');
    memcpy(s->line, line, len - 1);
    s->line[len - 1] = '\0';
    s->lines++;
}

static void scene_init(struct scene *s, enum sw_log_format format)
{
    *s = (struct scene){0};
    s->loop = sw_loop_virtual_new(INT64_C(1767366245678901), 1); /* 2026-01-02T15:04:05.678901Z */
    s->sink = sw_log_sink_new(s->loop, -1, format, SW_LEVEL_INFO);
    sw_log_sink_set_fn(s->sink, on_line, s);
    s->log = (struct sw_log){.sink = s->sink, .name = "coordination"};
}

static void scene_done(struct scene *s)
{
    assert_null(sw_log_sink_free(s->sink));
    assert_int_equal(sw_loop_close(s->loop), 0);
}

TEST(writes_json)
{
    struct scene s;
    scene_init(&s, SW_LOG_JSON);
    s.log.fields[0] = SW_STR("namespace", "web");
    s.log.fields[1] = SW_INT("shard", 3);
    sw_log_info(&s.log, "turn handed over", SW_STR("from", "a"), SW_STR("to", NULL),
                SW_INT("code", -410), SW_INT("big", INT64_MIN), SW_BOOL("ok", true),
                SW_MS("took", 1234), SW_ERR(-ECONNREFUSED));
    assert_string_equal(
        s.line,
        "{\"ts\":\"2026-01-02T15:04:05.678901Z\",\"level\":\"info\",\"logger\":\"coordination\","
        "\"msg\":\"turn handed over\",\"namespace\":\"web\",\"shard\":3,\"from\":\"a\",\"to\":null,"
        "\"code\":-410,\"big\":-9223372036854775808,\"ok\":true,\"took\":1.234,"
        "\"error\":\"connection refused\"}");
    s.log = (struct sw_log){.sink = s.sink};
    sw_log_error(&s.log, "x");
    assert_string_equal(
        s.line, "{\"ts\":\"2026-01-02T15:04:05.678901Z\",\"level\":\"error\",\"msg\":\"x\"}");
    scene_done(&s);
}

TEST(leaves_out_what_repeats_and_says_how_often)
{
    struct scene s;
    scene_init(&s, SW_LOG_JSON);
    for (int i = 0; i < 25; i++) {
        sw_log_warn(&s.log, "asked again", SW_INT("code", 1));
    }
    assert_int_equal(s.lines, 10);
    sw_log_warn(&s.log, "asked again", SW_INT("code", 2));
    sw_log_error(&s.log, "asked again", SW_INT("code", 1));
    s.log.fields[0] = SW_STR("namespace", "web");
    sw_log_warn(&s.log, "asked again", SW_INT("code", 1));
    s.log.fields[0] = SW_FIELD_LAST;
    assert_int_equal(s.lines, 13); /* each is another line */
    assert_null(strstr(s.line, "repeated"));
    sw_loop_virtual_advance(s.loop, 9999);
    sw_log_warn(&s.log, "asked again", SW_INT("code", 1));
    assert_int_equal(s.lines, 13);
    sw_loop_virtual_advance(s.loop, 1);
    sw_log_warn(&s.log, "asked again", SW_INT("code", 1));
    assert_int_equal(s.lines, 14);
    assert_non_null(strstr(s.line, "\"code\":1,\"repeated\":16}"));
    sw_log_warn(&s.log, "asked again", SW_INT("code", 1));
    assert_int_equal(s.lines, 15);
    assert_null(strstr(s.line, "repeated"));
    scene_done(&s);
}

TEST(leaves_nothing_out_where_everything_is_wanted)
{
    struct scene s;
    scene_init(&s, SW_LOG_JSON);
    sw_log_sink_set_level(s.sink, SW_LEVEL_DEBUG);
    for (int i = 0; i < 25; i++) {
        sw_log_warn(&s.log, "asked again", SW_INT("code", 1));
    }
    assert_int_equal(s.lines, 25);
    scene_done(&s);
}

TEST(writes_for_people)
{
    struct scene s;
    scene_init(&s, SW_LOG_CONSOLE);
    sw_log_info(&s.log, "turn handed over", SW_STR("from", "web/a"), SW_STR("to", "web/b"),
                SW_STR("why", "it is done"), SW_STR("empty", ""), SW_MS("took", 5),
                SW_ERR(-ECONNREFUSED), SW_STR("nothing", NULL));
    assert_string_equal(s.line,
                        "15:04:05.678 info  coordination: turn handed over                   "
                        "from=web/a to=web/b why=\"it is done\" empty=\"\" took=0.005s "
                        "error=\"connection refused\" nothing=null");
    s.log.name = NULL;
    sw_log_error(&s.log, "short");
    assert_string_equal(s.line, "15:04:05.678 error short");
    sw_log_warn(&s.log, "a message that is longer than the column at which fields usually begin",
                SW_INT("n", 1));
    assert_string_equal(s.line, "15:04:05.678 warn  a message that is longer than the column at "
                                "which fields usually begin  n=1");
    scene_done(&s);
}

/* Whatever bytes a text holds: one line, valid UTF-8, and JSON that reads back as the repaired
 * text. */
TEST(escapes_every_byte)
{
    for (int c = 1; c < 256; c++) {
        for (int form = 0; form < 2; form++) {
            struct scene s;
            scene_init(&s, form ? SW_LOG_CONSOLE : SW_LOG_JSON);
            char text[] = {'<', (char)c, '>', '\0'};
            sw_log_info(&s.log, "m", SW_STR("k", text));
            assert_true(sw_utf8_is_valid(s.line, strlen(s.line)));
            for (const char *p = s.line; *p; p++) {
                assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
            }
            if (!form) {
                json_t *json = json_loads(s.line, JSON_REJECT_DUPLICATES, NULL);
                SW_AUTO(char, sw_free) repaired = sw_utf8_repair(text, 3);
                assert_string_equal(json_string_value(json_object_get(json, "k")),
                                    repaired ? repaired : text);
                json_decref(json);
            }
            scene_done(&s);
        }
    }
}

/* At every length around the limit the line is whole JSON, and says so if something is missing. */
TEST(cuts_long_lines_and_says_so)
{
    static const char *const pieces[] = {"x", "\n", "\xe2\x82\xac", "\xff", "\""};
    for (size_t p = 0; p < SW_ARRAY_SIZE(pieces); p++) {
        for (size_t len = 7800; len < 8400; len += p == 0 ? 1 : 7) {
            struct scene s;
            scene_init(&s, SW_LOG_JSON);
            SW_AUTO(char, sw_free) text = sw_calloc(1, len + 8);
            size_t at = 0;
            for (size_t units = p == 1 || p == 4 ? 2
                                : p              ? 3
                                                 : 1;
                 at * units < len * strlen(pieces[p]); at += strlen(pieces[p])) {
                memcpy(text + at, pieces[p], strlen(pieces[p]));
            }
            sw_log_info(&s.log, "m", SW_STR("text", text), SW_INT("after", 7));
            assert_in_range(strlen(s.line), 1, 8191);
            json_error_t error;
            json_t *json = json_loads(s.line, JSON_REJECT_DUPLICATES, &error);
            if (!json) {
                fail_msg("length %zu: %s: ...%s", len, error.text, s.line + strlen(s.line) - 80);
            }
            bool is_whole = json_object_get(json, "after") != NULL;
            assert_int_equal(json_is_true(json_object_get(json, "cut")), !is_whole);
            json_decref(json);
            sw_log_info(&s.log, text);
            json = json_loads(s.line, JSON_REJECT_DUPLICATES, &error);
            assert_non_null(json);
            json_decref(json);
            scene_done(&s);
        }
    }
}

TEST(is_quiet_below_its_level)
{
    struct scene s;
    scene_init(&s, SW_LOG_JSON);
    sw_log_debug(&s.log, "quiet");
    assert_int_equal(s.lines, 0);
    assert_false(sw_log_is_on(&s.log, SW_LEVEL_DEBUG));
    sw_log_sink_set_level(s.sink, SW_LEVEL_DEBUG);
    sw_log_debug(&s.log, "heard");
    assert_int_equal(s.lines, 1);
    sw_log_sink_set_level(s.sink, SW_LEVEL_ERROR);
    sw_log_warn(&s.log, "quiet");
    assert_int_equal(s.lines, 1);
    struct sw_log none = {0};
    sw_log_error(&none, "nowhere");
    sw_log_error((struct sw_log *)NULL, "nowhere");
    assert_false(sw_log_is_on(&none, SW_LEVEL_ERROR));
    scene_done(&s);
}

static ssize_t read_all(int fd, char *bytes, size_t size)
{
    size_t len = 0;
    ssize_t got;
    while (len < size && (got = read(fd, bytes + len, size - len)) > 0) {
        len += (size_t)got;
    }
    return (ssize_t)len;
}

/* Fills a pipe with lines, empties it, and goes on. Every line but torn ones is whole, and the
 * numbers add up. Returns how many were torn. */
static int fill_a_pipe(const char *text)
{
    enum { LINES = 5000 };
    static char bytes[1 << 20];
    struct scene s;
    scene_init(&s, SW_LOG_JSON);
    int pipe_fds[2];
    assert_int_equal(pipe2(pipe_fds, O_NONBLOCK), 0);
    struct sw_log_sink *sink = sw_log_sink_new(s.loop, pipe_fds[1], SW_LOG_JSON, SW_LEVEL_DEBUG);
    struct sw_log log = {.sink = sink};
    for (int i = 0; i < LINES; i++) {
        sw_log_info(&log, text);
    }
    ssize_t len = read_all(pipe_fds[0], bytes, sizeof(bytes) - 1);
    assert_true(len > 0);
    sw_log_info(&log, "there is room again");
    sw_log_info(&log, "and so on");
    len += read_all(pipe_fds[0], bytes + len, sizeof(bytes) - 1 - (size_t)len);
    bytes[len] = '\0';
    int whole = 0, torn = 0;
    json_int_t dropped = 0;
    for (char *line = bytes, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        json_t *json = json_loads(line, 0, NULL);
        whole += json != NULL;
        torn += json == NULL;
        dropped += json_integer_value(json_object_get(json, "dropped"));
        json_decref(json);
    }
    assert_true(dropped > 0);
    assert_int_equal(whole + dropped, LINES + 2);
    sw_log_sink_free(sink);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    scene_done(&s);
    return torn;
}

TEST(counts_lines_that_nobody_takes)
{
    /* A pipe takes so short a line whole or not at all. */
    assert_int_equal(fill_a_pipe("a line of which a pipe takes some thousand"), 0);
}

TEST(ends_a_torn_line_before_the_next)
{
    char text[6000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(fill_a_pipe(text), 1);
}

TEST(survives_a_closed_descriptor)
{
    struct scene s;
    scene_init(&s, SW_LOG_JSON);
    struct sw_log_sink *sink = sw_log_sink_new(s.loop, -1, SW_LOG_CONSOLE, SW_LEVEL_INFO);
    struct sw_log log = {.sink = sink};
    sw_log_info(&log, "to nobody");
    sw_log_sink_free(sink);
    scene_done(&s);
}

TEST(reads_levels_and_formats)
{
    enum sw_level level = SW_LEVEL_INFO;
    enum sw_log_format format = SW_LOG_JSON;
    assert_int_equal(sw_log_level_parse("warn", &level), 0);
    assert_int_equal(level, SW_LEVEL_WARN);
    assert_int_equal(sw_log_level_parse("debug", &level), 0);
    assert_int_equal(level, SW_LEVEL_DEBUG);
    assert_int_equal(sw_log_level_parse("WARN", &level), -EINVAL);
    assert_int_equal(sw_log_level_parse("", &level), -EINVAL);
    assert_int_equal(level, SW_LEVEL_DEBUG);
    assert_int_equal(sw_log_format_parse("console", &format), 0);
    assert_int_equal(format, SW_LOG_CONSOLE);
    assert_int_equal(sw_log_format_parse("json", &format), 0);
    assert_int_equal(format, SW_LOG_JSON);
    assert_int_equal(sw_log_format_parse("text", &format), -EINVAL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("log", writes_json),
        CASE("log", leaves_out_what_repeats_and_says_how_often),
        CASE("log", leaves_nothing_out_where_everything_is_wanted),
        CASE("log", writes_for_people),
        CASE("log", escapes_every_byte),
        CASE("log", cuts_long_lines_and_says_so),
        CASE("log", is_quiet_below_its_level),
        CASE("log", counts_lines_that_nobody_takes),
        CASE("log", ends_a_torn_line_before_the_next),
        CASE("log", survives_a_closed_descriptor),
        CASE("log", reads_levels_and_formats),
    };
    return RUN(tests);
}
