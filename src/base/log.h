/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured log, one line an event, as JSON or for people. A message is a constant; what varies
 * are fields. Nothing is allocated; a line longer than 8 KiB is cut and says so. Never a token, a
 * key or a body.
 *
 * A struct sw_log is a context that hangs on the object it speaks of: its name (the JSON key
 * "logger"), and up to four fields that stand in every line. It is copied to be made more precise;
 * zeroed memory logs nothing.
 *
 * Of lines that are the same in everything but their time, ten within ten seconds are written; the
 * next one after that says how many were left out ("repeated"). At level debug all are.
 *
 * Text that is not UTF-8 appears with U+FFFD in the place of what is wrong. Times are UTC.
 */
#ifndef SW_BASE_LOG_H
#define SW_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include <slipway/field.h>

struct sw_loop;

enum sw_log_format {
    SW_LOG_JSON,    /* {"ts":"2026-01-02T15:04:05.678901Z","level":"info","logger":...,"msg":...} */
    SW_LOG_CONSOLE, /* 15:04:05.678 info  coordination: turn handed over    from=web/a to=web/b */
};

struct sw_log_sink;

/* Writes to the descriptor with one write(2) a line; colours where it is a terminal (console only).
 * The loop gives the time. The descriptor stays the caller's. A line that the descriptor does not
 * take is dropped, and the next one says how many were ("dropped"). */
struct sw_log_sink *sw_log_sink_new(struct sw_loop *loop, int fd, enum sw_log_format format,
                                    enum sw_level level);
struct sw_log_sink *sw_log_sink_free(struct sw_log_sink *sink);
void sw_log_sink_set_level(struct sw_log_sink *sink, enum sw_level level);
/* Instead of the descriptor: for tests. The line has its newline, and a NUL that len does not
 * count. */
typedef void (*sw_log_line_fn)(void *arg, const char *line, size_t len);
void sw_log_sink_set_fn(struct sw_log_sink *sink, sw_log_line_fn fn, void *arg);

struct sw_log {
    struct sw_log_sink *sink; /* NULL: nothing is logged */
    const char *name;
    struct sw_field fields[4]; /* unused ones are SW_FIELD_END */
};

void sw_log_write(const struct sw_log *log, enum sw_level level, const char *message,
                  const struct sw_field *fields);
bool sw_log_is_on(const struct sw_log *log, enum sw_level level);

/* sw_log_warn(&w->log, "watch lost, resuming", SW_INT("code", code), SW_STR("reason", reason)); */
#define sw_log_debug(log, ...) sw_log_at_(log, SW_LEVEL_DEBUG, __VA_ARGS__, SW_FIELD_LAST)
#define sw_log_info(log, ...) sw_log_at_(log, SW_LEVEL_INFO, __VA_ARGS__, SW_FIELD_LAST)
#define sw_log_warn(log, ...) sw_log_at_(log, SW_LEVEL_WARN, __VA_ARGS__, SW_FIELD_LAST)
#define sw_log_error(log, ...) sw_log_at_(log, SW_LEVEL_ERROR, __VA_ARGS__, SW_FIELD_LAST)
#define sw_log_at_(log, level, message, ...) \
    sw_log_write(log, level, message, (const struct sw_field[]){__VA_ARGS__})

int sw_log_level_parse(const char *text, enum sw_level *ret_level);        /* -EINVAL */
const char *sw_log_level_name(enum sw_level level);                        /* "debug" */
int sw_log_format_parse(const char *text, enum sw_log_format *ret_format); /* -EINVAL */

#endif
