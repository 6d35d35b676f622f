/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both begin with the compact JSON text: the one sets it in lines, the other reads it by libyaml
 * (JSON is YAML 1.2, and what sw_json_dump writes is YAML 1.1 too) and emits it in block style.
 */
#include "output.h"

#include <string.h>
#include <yaml.h>

#include <slipway/json.h>

#include "base/buf.h"
#include "base/util.h"

/* ---- JSON ---- */

static void new_line(struct sw_buf *out, unsigned depth)
{
    sw_buf_printf(out, "\n%*s", (int)(2 * depth), "");
}

/* The closing quote of the string that begins here. */
static const char *end_of_string(const char *p)
{
    for (p++; *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p;
}

void ks_put_json(const struct sw_json *value, struct sw_buf *out)
{
    struct sw_arena *arena = sw_arena_new(0);
    unsigned depth = 0;

    for (const char *p = sw_json_dump(value, arena, NULL); *p; p++) {
        if (*p == '"') {
            const char *end = end_of_string(p);
            sw_buf_append(out, p, (size_t)(end - p) + 1);
            p = end;
        } else if (*p == '{' || *p == '[') {
            sw_buf_append(out, p, 1);
            if (p[1] == '}' || p[1] == ']')
                sw_buf_append(out, ++p, 1);
            else
                new_line(out, ++depth);
        } else if (*p == '}' || *p == ']') {
            new_line(out, --depth);
            sw_buf_append(out, p, 1);
        } else {
            sw_buf_append(out, p, 1);
            if (*p == ',')
                new_line(out, depth);
            else if (*p == ':')
                sw_buf_puts(out, " ");
        }
    }
    sw_buf_puts(out, "\n");
    sw_arena_free(arena);
}

/* ---- YAML ---- */

static int put(void *arg, unsigned char *bytes, size_t len)
{
    return sw_buf_append(arg, bytes, len) == 0;
}

/* Would YAML (1.1, of which most readers know all) take the word for null, a truth, a number or a
 * time? What begins like a number or a sign counts as one. */
static bool is_ambiguous(const char *text)
{
    static const char *const words[] = {"",    "~", "null", "true", "false", "yes", "no", "on",
                                        "off", "y", "n",    ".inf", ".nan",  "<<",  "="};

    for (size_t i = 0; i < SW_ARRAY_SIZE(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return strchr("0123456789+-.", text[0]) != NULL;
}

static void set_style(yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SEQUENCE_START_EVENT:
        event->data.sequence_start.style = YAML_BLOCK_SEQUENCE_STYLE;
        break;
    case YAML_MAPPING_START_EVENT:
        event->data.mapping_start.style = YAML_BLOCK_MAPPING_STYLE;
        break;
    case YAML_DOCUMENT_START_EVENT:
        event->data.document_start.implicit = 1;
        break;
    case YAML_DOCUMENT_END_EVENT:
        event->data.document_end.implicit = 1;
        break;
    case YAML_SCALAR_EVENT:
        if (event->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE &&
            !is_ambiguous((const char *)event->data.scalar.value)) {
            event->data.scalar.style = YAML_ANY_SCALAR_STYLE;
            event->data.scalar.plain_implicit = 1;
        }
        break;
    default:
        break;
    }
}

/* libyaml fails only where memory does, or on a text that is no YAML: both are ours. */
void ks_put_yaml(const struct sw_json *value, struct sw_buf *out)
{
    struct sw_arena *arena = sw_arena_new(0);
    size_t len;
    const char *text = sw_json_dump(value, arena, &len);
    yaml_parser_t parser;
    yaml_emitter_t emitter;
    yaml_event_t event;
    bool is_over = false;

    sw_assert(yaml_parser_initialize(&parser) && yaml_emitter_initialize(&emitter));
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_emitter_set_output(&emitter, put, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    while (!is_over) {
        sw_assert(yaml_parser_parse(&parser, &event));
        is_over = event.type == YAML_STREAM_END_EVENT;
        set_style(&event);
        sw_assert(yaml_emitter_emit(&emitter, &event)); /* takes the event */
    }
    yaml_emitter_delete(&emitter);
    yaml_parser_delete(&parser);
    sw_arena_free(arena);
}

void ks_put(const char *format, const struct sw_json *value, struct sw_buf *out)
{
    if (strcmp(format, "yaml") == 0)
        ks_put_yaml(value, out);
    else
        ks_put_json(value, out);
}
