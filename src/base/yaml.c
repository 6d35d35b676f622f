/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From libyaml's events to a tree. Nesting and the number of nodes are bounded here: libyaml has a
 * bound for neither, and searches all open levels for each token it reads.
 */
#include "base/yaml.h"

#include <string.h>
#include <strings.h>
#include <yaml.h>

#include <slipway/arena.h>

#include "base/error.h"
#include "base/utf8.h"
#include "base/util.h"

enum {
    MAX_NESTING = 32,  /* a configuration needs four or five */
    MAX_NODES = 10000, /* keys are compared with all that went before: 5 * 10^7 comparisons */
    SHOWN_BYTES = 48,  /* of a value in a message */
};

struct reader {
    yaml_parser_t parser;
    struct sw_arena *arena;
    const char *name;
    const char *text;
    size_t len;
    size_t lines; /* of text */
    size_t nodes;
    struct sw_error *error;
};

const char *sw_yaml_show(struct sw_arena *arena, const char *text)
{
    size_t len = strlen(text);
    char *shown = sw_arena_alloc(arena, SHOWN_BYTES + sizeof("..."));
    size_t used = 0;
    for (size_t at = 0; at < len;) {
        size_t step = sw_utf8_length(text + at, len - at, NULL);
        if (used + SW_MAX(step, (size_t)1) > SHOWN_BYTES) {
            memcpy(shown + used, "...", sizeof("..."));
            break;
        }
        if (step == 0 || (unsigned char)text[at] < 0x20 || text[at] == 0x7f) {
            shown[used++] = text[at] == '\n' || text[at] == '\t' ? ' ' : '?';
            at++;
        } else {
            memcpy(shown + used, text + at, step);
            used += step;
            at += step;
        }
    }
    return shown;
}

const char *sw_yaml_path(struct sw_arena *arena, const struct sw_yaml *node, const char *last)
{
    const char *path = last ? sw_yaml_show(arena, last) : "";
    for (; node && node->parent; node = node->parent) {
        const char *point = *path && *path != '[' ? "." : "";
        if (node->key) {
            path = sw_arena_printf(arena, "%s%s%s", sw_yaml_show(arena, node->key), point, path);
        } else {
            path = sw_arena_printf(arena, "[%zu]%s%s", node->index, point, path);
        }
    }
    return path;
}

/* ---- mistakes ---- */

/* Line breaks as YAML 1.1 has them, in the first len bytes: LF, CR, CR LF, NEL, LS and PS. */
static size_t count_breaks(const char *text, size_t len)
{
    size_t breaks = 0;
    for (size_t i = 0; i < len; i++) {
        const char *p = text + i;
        size_t left = len - i;
        bool is_cr = *p == '\r' && (left == 1 || p[1] != '\n');
        bool is_nel = left >= 2 && memcmp(p, "\xc2\x85", 2) == 0;
        bool is_ls =
            left >= 3 && (memcmp(p, "\xe2\x80\xa8", 3) == 0 || memcmp(p, "\xe2\x80\xa9", 3) == 0);
        breaks += *p == '\n' || is_cr || is_nel || is_ls;
    }
    return breaks;
}

/* libyaml finds what is missing at the end on the line behind the last one. */
static size_t real_line(const struct reader *r, size_t line)
{
    return SW_MIN(line, r->lines);
}

/* "file:12: a.b: what is wrong". The value is a member (key) or the next element of parent, or
 * nothing more is known than that it is in parent. */
static int refuse(struct reader *r, size_t line, const struct sw_yaml *parent, const char *key,
                  const char *what)
{
    const char *path = sw_yaml_path(r->arena, parent, key);
    if (parent && parent->type == SW_YAML_SEQUENCE) {
        path = sw_arena_printf(r->arena, "%s[%zu]", path, parent->count);
    }
    return sw_error_set(r->error, SW_E_SYNTAX, "%s:%zu: %s%s%s", r->name, real_line(r, line), path,
                        *path ? ": " : "", what);
}

/* Whether the line (from 1) is indented with a tab, which is what most people stumble over. */
static bool has_tab(const struct reader *r, size_t line)
{
    const char *p = r->text;
    const char *end = r->text + r->len;
    while (--line > 0 && p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        p = newline ? newline + 1 : end;
    }
    while (p < end && *p == ' ') {
        p++;
    }
    return p < end && *p == '\t';
}

static int refuse_syntax(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "not YAML";
    sw_assert(p->error != YAML_MEMORY_ERROR);
    if (p->error == YAML_READER_ERROR) {
        return sw_error_set(r->error, SW_E_SYNTAX, "%s:%zu: not UTF-8 text: %s", r->name,
                            count_breaks(r->text, SW_MIN(p->problem_offset, r->len)) + 1, problem);
    }
    size_t line = real_line(r, p->problem_mark.line + 1);
    if (has_tab(r, line)) {
        return sw_error_set(r->error, SW_E_SYNTAX,
                            "%s:%zu: YAML allows no tab here; indent with spaces", r->name, line);
    }
    if (p->context) {
        return sw_error_set(r->error, SW_E_SYNTAX, "%s:%zu: not YAML: %s, %s (from line %zu)",
                            r->name, line, problem, p->context,
                            real_line(r, p->context_mark.line + 1));
    }
    return sw_error_set(r->error, SW_E_SYNTAX, "%s:%zu: not YAML: %s", r->name, line, problem);
}

/* ---- reading ---- */

static int next_event(struct reader *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) ? 0 : refuse_syntax(r);
}

static const yaml_char_t *tag_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.tag;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.tag;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.tag;
    default:
        return NULL;
    }
}

static void append(struct sw_yaml *parent, struct sw_yaml *node)
{
    if (parent->last) {
        parent->last->next = node;
    } else {
        parent->first = node;
    }
    parent->last = node;
    node->index = parent->count++;
}

static int read_children(struct reader *r, struct sw_yaml *parent, size_t depth);

/* Makes a node of the event that begins it, and reads all that belongs to it. */
static int read_node(struct reader *r, const yaml_event_t *event, struct sw_yaml *parent,
                     const char *key, size_t key_line, size_t depth, struct sw_yaml **ret_node)
{
    size_t line = real_line(r, event->start_mark.line + 1);
    if (event->type == YAML_ALIAS_EVENT) {
        return refuse(r, line, parent, key, "an alias (*) is not supported; write the value out");
    }
    if (tag_of(event)) {
        return refuse(r, line, parent, key, "a tag (!) is not supported");
    }
    if (depth > MAX_NESTING) {
        return refuse(r, line, parent, key, "nested too deeply");
    }
    if (++r->nodes > MAX_NODES) {
        return refuse(r, line, parent, key, "too many values in one file");
    }
    struct sw_yaml *node = SW_ARENA_NEW(r->arena, struct sw_yaml);
    node->line = line;
    node->key = key;
    node->key_line = key_line;
    node->parent = parent;
    *ret_node = node;
    if (event->type == YAML_SCALAR_EVENT) {
        const char *text = (const char *)event->data.scalar.value;
        if (memchr(text, '\0', event->data.scalar.length)) {
            return refuse(r, line, parent, key, "contains a NUL character");
        }
        node->type = SW_YAML_SCALAR;
        node->text = sw_arena_strndup(r->arena, text, event->data.scalar.length);
        node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        return 0;
    }
    node->type = event->type == YAML_MAPPING_START_EVENT ? SW_YAML_MAPPING : SW_YAML_SEQUENCE;
    return read_children(r, node, depth + 1);
}

/* The event is a key. Takes what follows for its value. */
static int read_member(struct reader *r, const yaml_event_t *event, struct sw_yaml *mapping,
                       size_t depth)
{
    size_t line = event->start_mark.line + 1;
    if (event->type != YAML_SCALAR_EVENT || event->data.scalar.tag) {
        return refuse(r, line, mapping, NULL, "a key must be a word");
    }
    const char *key = (const char *)event->data.scalar.value;
    if (memchr(key, '\0', event->data.scalar.length)) {
        return refuse(r, line, mapping, NULL, "a key contains a NUL character");
    }
    key = sw_arena_strdup(r->arena, key);
    const struct sw_yaml *before = sw_yaml_get(mapping, key);
    if (before) {
        return refuse(r, line, mapping, key,
                      sw_arena_printf(r->arena, "set twice, first on line %zu", before->key_line));
    }
    yaml_event_t value;
    int rc = next_event(r, &value);
    if (rc) {
        return rc;
    }
    struct sw_yaml *node = NULL;
    rc = read_node(r, &value, mapping, key, line, depth, &node);
    yaml_event_delete(&value);
    if (!rc) {
        append(mapping, node);
    }
    return rc;
}

static int read_children(struct reader *r, struct sw_yaml *parent, size_t depth)
{
    for (;;) {
        yaml_event_t event;
        int rc = next_event(r, &event);
        if (rc) {
            return rc;
        }
        bool is_end = event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT;
        if (!is_end && parent->type == SW_YAML_MAPPING) {
            rc = read_member(r, &event, parent, depth);
        } else if (!is_end) {
            struct sw_yaml *node = NULL;
            rc = read_node(r, &event, parent, NULL, 0, depth, &node);
            if (!rc) {
                append(parent, node);
            }
        }
        yaml_event_delete(&event);
        if (rc || is_end) {
            return rc;
        }
    }
}

/* The one document of the text. */
static int read_stream(struct reader *r, struct sw_yaml **ret_root)
{
    bool has_document = false;
    for (;;) {
        yaml_event_t event;
        int rc = next_event(r, &event);
        if (rc) {
            return rc;
        }
        yaml_event_type_t type = event.type;
        size_t line = event.start_mark.line + 1;
        if (type == YAML_DOCUMENT_START_EVENT && has_document) {
            rc = refuse(r, line, NULL, NULL, "a second document; a file holds one");
        } else if (type == YAML_DOCUMENT_START_EVENT) {
            has_document = true;
        } else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
                   type != YAML_DOCUMENT_END_EVENT) {
            rc = read_node(r, &event, NULL, NULL, 0, 0, ret_root);
        }
        yaml_event_delete(&event);
        if (rc || type == YAML_STREAM_END_EVENT) {
            return rc;
        }
    }
}

int sw_yaml_parse(struct sw_arena *arena, const char *name, const char *text, size_t len,
                  const struct sw_yaml **ret_root, struct sw_error *error)
{
    struct reader r = {.arena = arena, .name = name, .text = text, .len = len, .error = error};
    /* A break at the very end begins no line. */
    r.lines = count_breaks(text, len > 0 ? len - 1 : 0) + 1;
    sw_assert(yaml_parser_initialize(&r.parser));
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    struct sw_yaml *root = NULL;
    int rc = read_stream(&r, &root);
    yaml_parser_delete(&r.parser);
    if (!rc) {
        /* A document of nothing, or of a null, is none. */
        *ret_root = root && sw_yaml_is_null(root) ? NULL : root;
    }
    return rc;
}

const struct sw_yaml *sw_yaml_get(const struct sw_yaml *mapping, const char *key)
{
    for (const struct sw_yaml *node = mapping->first; node; node = node->next) {
        if (strcmp(node->key, key) == 0) {
            return node;
        }
    }
    return NULL;
}

bool sw_yaml_is_null(const struct sw_yaml *node)
{
    return node->type == SW_YAML_SCALAR && node->is_plain &&
           (!*node->text || strcmp(node->text, "~") == 0 || strcasecmp(node->text, "null") == 0);
}
