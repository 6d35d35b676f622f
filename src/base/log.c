/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's two forms and its sink. A line is made in a buffer on the stack: bytes that do not fit
 * are left out at the end of a character or before a field, and the line says so.
 */
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/loop.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/util.h"

enum {
    LINE_SIZE = 8192,
    /* Kept free for what ends a line: "dropped" with 20 digits, "repeated" with 10, "cut", brace,
     * newline, NUL. */
    TAIL_SIZE = 96,
    MESSAGE_COLUMN = 48, /* where the fields of a console line begin, if the message is no longer */
};

/* The very same line, so often in so long, says nothing new. 128 of them are told apart; where two
 * share a place the one forgets the other, and both are written. */
enum { REPEATS = 128, REPEATED_MOST = 10, REPEATED_MS = 10000 };

struct repeat {
    uint64_t hash;
    uint64_t since_ms;
    uint32_t count;
};

struct sw_log_sink {
    struct sw_loop *loop;
    int fd;
    enum sw_log_format format;
    enum sw_level level;
    bool has_colour;
    bool is_torn; /* the last write ended within a line */
    uint64_t dropped;
    sw_log_line_fn fn;
    void *arg;
    struct repeat repeats[REPEATS];
};

struct line {
    const struct sw_log_sink *sink;
    size_t len;
    size_t limit;
    bool is_cut;
    char bytes[LINE_SIZE];
};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

/* ---- putting a line together ---- */

/* Once something was left out, nothing follows. */
static bool put(struct line *line, const char *bytes, size_t len)
{
    if (line->is_cut || len > line->limit - line->len) {
        line->is_cut = true;
        return false;
    }
    memcpy(line->bytes + line->len, bytes, len);
    line->len += len;
    return true;
}

static bool put_text(struct line *line, const char *text)
{
    return put(line, text, strlen(text));
}

/* One character, or JSON's escape for it. */
static bool put_character(struct line *line, const char *text, size_t len)
{
    static const char plain[] = "btnvfr"; /* from 8 on */
    unsigned char c = (unsigned char)text[0];
    char escape[8];
    if (len > 1 || (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)) {
        return put(line, text, len);
    }
    if (c == '"' || c == '\\') {
        escape[0] = '\\';
        escape[1] = (char)c;
        return put(line, escape, 2);
    }
    if (c >= 8 && c <= 13 && c != 11) { /* JSON has no \v */
        escape[0] = '\\';
        escape[1] = plain[c - 8];
        return put(line, escape, 2);
    }
    snprintf(escape, sizeof(escape), "\\u%04x", c);
    return put(line, escape, 6);
}

/* What JSON writes between quotes; in a console line it keeps control sequences of a terminal, and
 * new lines, out of it. Stops where the line is full. */
static void put_escaped(struct line *line, const char *text)
{
    size_t len = strlen(text);
    size_t skip = 0;
    for (size_t at = 0; at < len && !line->is_cut;) {
        size_t step = sw_utf8_length(text + at, len - at, &skip);
        if (step) {
            put_character(line, text + at, step);
            at += step;
        } else {
            put_text(line, SW_UTF8_REPLACEMENT);
            at += skip;
        }
    }
}

static void put_quoted(struct line *line, const char *text)
{
    if (line->is_cut || line->limit - line->len < 2) {
        line->is_cut = true;
        return;
    }
    line->limit--; /* so that the closing quote fits */
    put_text(line, "\"");
    put_escaped(line, text);
    line->limit++;
    line->bytes[line->len++] = '"';
}

static bool needs_quotes(const char *text)
{
    if (!*text) {
        return true;
    }
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c == 0x7f) {
            return true;
        }
    }
    return false;
}

static void put_string(struct line *line, const char *text)
{
    if (!text) {
        put_text(line, "null");
    } else if (line->sink->format == SW_LOG_JSON || needs_quotes(text)) {
        put_quoted(line, text);
    } else {
        put_escaped(line, text);
    }
}

static void put_value(struct line *line, const struct sw_field *field)
{
    char number[40];
    switch (field->type) {
    case SW_FIELD_STRING:
        put_string(line, field->value.string);
        return;
    case SW_FIELD_ERROR:
        put_string(line, sw_strerror((int)field->value.integer));
        return;
    case SW_FIELD_BOOL:
        put_text(line, field->value.boolean ? "true" : "false");
        return;
    case SW_FIELD_INT:
        snprintf(number, sizeof(number), "%lld", (long long)field->value.integer);
        put_text(line, number);
        return;
    case SW_FIELD_SECONDS:
        snprintf(number, sizeof(number), "%llu.%03u%s",
                 (unsigned long long)field->value.milliseconds / 1000,
                 (unsigned)(field->value.milliseconds % 1000),
                 line->sink->format == SW_LOG_JSON ? "" : "s");
        put_text(line, number);
        return;
    case SW_FIELD_END:
        return;
    }
}

static void put_key(struct line *line, const char *key)
{
    if (line->sink->format == SW_LOG_JSON) {
        put_text(line, ",");
        put_quoted(line, key);
        put_text(line, ":");
        return;
    }
    put_text(line, line->sink->has_colour ? " \x1b[2m" : " ");
    put_escaped(line, key);
    put_text(line, line->sink->has_colour ? "=\x1b[0m" : "=");
}

/* A field of which not even the beginning fits is left out: only a text is worth cutting. */
static void put_field(struct line *line, const struct sw_field *field)
{
    size_t start = line->len;
    put_key(line, field->key);
    size_t value = line->len;
    put_value(line, field);
    bool is_text = field->type == SW_FIELD_STRING && field->value.string;
    if (line->is_cut && (!is_text || line->len - value < 3)) {
        line->len = start;
    }
}

static void put_fields(struct line *line, const struct sw_log *log, const struct sw_field *fields)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(log->fields) && log->fields[i].type != SW_FIELD_END; i++) {
        if (!line->is_cut) {
            put_field(line, &log->fields[i]);
        }
    }
    for (; fields && fields->type != SW_FIELD_END && !line->is_cut; fields++) {
        put_field(line, fields);
    }
}

/* ---- the two forms ---- */

static void put_json_head(struct line *line, const struct sw_log *log, enum sw_level level,
                          const char *message)
{
    char when[SW_TIME_SIZE];
    sw_time_format_micro(sw_wall_us(line->sink->loop), when);
    put_text(line, "{\"ts\":\"");
    put_text(line, when);
    put_text(line, "\",\"level\":\"");
    put_text(line, level_names[level]);
    put_text(line, "\"");
    if (log->name) {
        put_text(line, ",\"logger\":");
        put_quoted(line, log->name);
    }
    put_text(line, ",\"msg\":");
    put_quoted(line, message);
}

static void put_console_head(struct line *line, const struct sw_log *log, enum sw_level level,
                             const char *message, bool has_fields)
{
    static const char *const colours[] = {"\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[31m"};
    bool has_colour = line->sink->has_colour;
    char when[SW_TIME_SIZE];
    sw_time_format_micro(sw_wall_us(line->sink->loop), when);
    put_text(line, has_colour ? "\x1b[2m" : "");
    put(line, when + 11, 12); /* 15:04:05.678 */
    put_text(line, has_colour ? "\x1b[0m " : " ");
    put_text(line, has_colour ? colours[level] : "");
    put_text(line, level_names[level]);
    put_text(line, has_colour ? "\x1b[0m" : "");
    put(line, "   ", 6 - strlen(level_names[level]));
    size_t start = line->len;
    if (log->name) {
        put_escaped(line, log->name);
        put_text(line, ": ");
    }
    put_escaped(line, message);
    if (has_fields) {
        put_text(line, " ");
    }
    while (has_fields && line->len - start < MESSAGE_COLUMN) {
        put_text(line, " ");
    }
}

/* What ends a line has room kept for it. */
static void put_tail(struct line *line, uint32_t repeated)
{
    bool is_cut = line->is_cut;
    line->limit = LINE_SIZE - 1;
    line->is_cut = false;
    if (is_cut) {
        put_field(line, &SW_BOOL("cut", true));
    }
    if (repeated) {
        put_field(line, &SW_INT("repeated", repeated));
    }
    if (line->sink->dropped) {
        put_field(line, &SW_INT("dropped", line->sink->dropped));
    }
    put_text(line, line->sink->format == SW_LOG_JSON ? "}\n" : "\n");
    line->bytes[line->len] = '\0';
}

/* ---- repetition ---- */

static uint64_t mix(uint64_t hash, const void *bytes, size_t len)
{
    for (const unsigned char *at = bytes, *end = at + len; at < end; at++) {
        hash = (hash ^ *at) * UINT64_C(1099511628211); /* FNV-1a */
    }
    return hash;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return text ? mix(hash, text, strlen(text) + 1) : mix(hash, "\1", 1);
}

static uint64_t mix_field(uint64_t hash, const struct sw_field *field)
{
    hash = mix_text(hash, field->key);
    switch (field->type) {
    case SW_FIELD_STRING:
        return mix_text(hash, field->value.string);
    case SW_FIELD_BOOL:
        return mix(hash, field->value.boolean ? "t" : "f", 1);
    case SW_FIELD_INT:
    case SW_FIELD_SECONDS:
    case SW_FIELD_ERROR:
        return mix(hash, &field->value.integer, sizeof(field->value.integer));
    case SW_FIELD_END:
        break;
    }
    return hash;
}

/* Of all that is in the line but the time. */
static uint64_t hash_of(const struct sw_log *log, enum sw_level level, const char *message,
                        const struct sw_field *fields)
{
    uint64_t hash = mix_text(UINT64_C(14695981039346656037), message);
    hash = mix_text(mix(hash, &level, sizeof(level)), log->name);
    for (size_t i = 0; i < SW_ARRAY_SIZE(log->fields) && log->fields[i].type != SW_FIELD_END; i++) {
        hash = mix_field(hash, &log->fields[i]);
    }
    for (; fields && fields->type != SW_FIELD_END; fields++) {
        hash = mix_field(hash, fields);
    }
    return hash;
}

/* Whether the line is to be left out; if not, how many like it were. */
static bool is_repeated(struct sw_log_sink *sink, uint64_t hash, uint32_t *ret_left_out)
{
    struct repeat *repeat = &sink->repeats[hash % REPEATS];
    uint64_t now_ms = sw_now_ms(sink->loop);
    bool is_same = repeat->hash == hash && repeat->count > 0;
    *ret_left_out = 0;
    if (is_same && now_ms - repeat->since_ms < REPEATED_MS) {
        repeat->count += repeat->count < UINT32_MAX;
        return repeat->count > REPEATED_MOST;
    }
    if (is_same && repeat->count > REPEATED_MOST) {
        *ret_left_out = repeat->count - REPEATED_MOST;
    }
    *repeat = (struct repeat){.hash = hash, .since_ms = now_ms, .count = 1};
    return false;
}

/* ---- the sink ---- */

/* True once all is written. */
static bool write_all(struct sw_log_sink *sink, const char *bytes, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t wrote = write(sink->fd, bytes + done, len - done);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) { /* EAGAIN: whoever reads is too slow; else: nobody reads */
            sink->is_torn = sink->is_torn || done > 0;
            return false;
        }
        done += (size_t)wrote;
    }
    return true;
}

static void emit(struct sw_log_sink *sink, const char *bytes, size_t len)
{
    if (sink->fn) {
        sink->fn(sink->arg, bytes, len);
        return;
    }
    if (sink->is_torn) {
        if (!write_all(sink, "\n", 1)) {
            sink->dropped++;
            return;
        }
        sink->is_torn = false;
    }
    if (write_all(sink, bytes, len)) {
        sink->dropped = 0;
    } else {
        sink->dropped++;
    }
}

struct sw_log_sink *sw_log_sink_new(struct sw_loop *loop, int fd, enum sw_log_format format,
                                    enum sw_level level)
{
    struct sw_log_sink *sink = SW_NEW(struct sw_log_sink);
    sink->loop = loop;
    sink->fd = fd;
    sink->format = format;
    sink->level = level;
    sink->has_colour = format == SW_LOG_CONSOLE && isatty(fd) == 1;
    return sink;
}

struct sw_log_sink *sw_log_sink_free(struct sw_log_sink *sink)
{
    return sw_free(sink);
}

void sw_log_sink_set_level(struct sw_log_sink *sink, enum sw_level level)
{
    sink->level = level;
}

void sw_log_sink_set_fn(struct sw_log_sink *sink, sw_log_line_fn fn, void *arg)
{
    sink->fn = fn;
    sink->arg = arg;
}

bool sw_log_is_on(const struct sw_log *log, enum sw_level level)
{
    return log && log->sink && level >= log->sink->level;
}

void sw_log_write(const struct sw_log *log, enum sw_level level, const char *message,
                  const struct sw_field *fields)
{
    if (!sw_log_is_on(log, level)) {
        return;
    }
    struct sw_log_sink *sink = log->sink;
    uint32_t repeated = 0;
    /* Whoever wants everything gets it. */
    if (sink->level > SW_LEVEL_DEBUG &&
        is_repeated(sink, hash_of(log, level, message, fields), &repeated)) {
        return;
    }
    struct line line;
    line.sink = sink;
    line.len = 0;
    line.limit = LINE_SIZE - TAIL_SIZE;
    line.is_cut = false;
    bool has_fields = log->fields[0].type != SW_FIELD_END ||
                      (fields && fields[0].type != SW_FIELD_END) || sink->dropped || repeated;
    if (sink->format == SW_LOG_JSON) {
        put_json_head(&line, log, level, message);
    } else {
        put_console_head(&line, log, level, message, has_fields);
    }
    put_fields(&line, log, fields);
    put_tail(&line, repeated);
    emit(sink, line.bytes, line.len);
}

/* ---- names ---- */

int sw_log_level_parse(const char *text, enum sw_level *ret_level)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(level_names); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *ret_level = (enum sw_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

const char *sw_log_level_name(enum sw_level level)
{
    return level_names[level];
}

int sw_log_format_parse(const char *text, enum sw_log_format *ret_format)
{
    if (strcmp(text, "json") == 0) {
        *ret_format = SW_LOG_JSON;
    } else if (strcmp(text, "console") == 0) {
        *ret_format = SW_LOG_CONSOLE;
    } else {
        return -EINVAL;
    }
    return 0;
}
