/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of the tables that kubectl shows, as the real server words them. */
#include "rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/time.h"
#include "base/util.h"
#include "document.h"

static json_t *two_units(int64_t large, char large_unit, int64_t small, char small_unit)
{
    if (small == 0) {
        return json_sprintf("%" PRId64 "%c", large, large_unit);
    }
    return json_sprintf("%" PRId64 "%c%" PRId64 "%c", large, large_unit, small, small_unit);
}

json_t *sw_sim_cell_since(const char *then, int64_t wall_us)
{
    int64_t then_us;
    if (sw_time_parse(then, strlen(then), &then_us)) {
        return json_string("<unknown>");
    }
    int64_t s = (wall_us - then_us) / 1000000;
    int64_t minutes = s / 60;
    int64_t hours = s / 3600;
    int64_t days = hours / 24;
    if (s < -1) {
        return json_string("<invalid>");
    }
    if (s < 0) {
        return json_string("0s");
    }
    /* Two units while the small one still says something. */
    if (s < 2 * 60) {
        return json_sprintf("%" PRId64 "s", s);
    }
    if (minutes < 10) {
        return two_units(minutes, 'm', s % 60, 's');
    }
    if (minutes < 3 * 60) {
        return json_sprintf("%" PRId64 "m", minutes);
    }
    if (hours < 8) {
        return two_units(hours, 'h', minutes % 60, 'm');
    }
    if (hours < 48) {
        return json_sprintf("%" PRId64 "h", hours);
    }
    if (hours < 8 * 24) {
        return two_units(days, 'd', hours % 24, 'h');
    }
    if (days < 2 * 365) {
        return json_sprintf("%" PRId64 "d", days);
    }
    if (days < 8 * 365) {
        return two_units(days / 365, 'y', days % 365, 'd');
    }
    return json_sprintf("%" PRId64 "y", days / 365);
}

json_t *sw_sim_cell_age(const json_t *object, int64_t wall_us)
{
    return sw_sim_cell_since(sw_sim_text_at(object, "metadata.creationTimestamp"), wall_us);
}

json_t *sw_sim_cell_names(const json_t *list, const char *name)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        sw_buf_printf(&text, "%s%s", i ? "," : "", sw_sim_text_at(json_array_get(list, i), name));
    }
    json_t *made = json_string(text.bytes);
    sw_buf_done(&text);
    return made;
}

static int compare_texts(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

static void put_labels(struct sw_buf *text, const json_t *labels)
{
    size_t count = json_object_size(labels);
    const char **names = sw_calloc(count + 1, sizeof(*names));
    size_t at = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)labels, name, value)
    {
        names[at++] = name;
    }
    qsort(names, count, sizeof(*names), compare_texts);
    for (size_t i = 0; i < count; i++) {
        const char *shown = json_string_value(json_object_get(labels, names[i]));
        sw_buf_printf(text, "%s%s=%s", text->len ? "," : "", names[i], shown ? shown : "");
    }
    sw_free(names);
}

static void put_expression(struct sw_buf *text, const json_t *expression)
{
    const char *operator= sw_sim_text_at(expression, "operator");
    const char *key = sw_sim_text_at(expression, "key");
    bool is_in = strcmp(operator, "In") == 0;
    sw_buf_puts(text, text->len ? "," : "");
    if (!is_in && strcmp(operator, "NotIn") != 0) {
        sw_buf_printf(text, "%s%s", strcmp(operator, "DoesNotExist") == 0 ? "!" : "", key);
        return;
    }
    const json_t *values = json_object_get(expression, "values");
    sw_buf_printf(text, "%s %s (", key, is_in ? "in" : "notin");
    for (size_t i = 0; i < json_array_size(values); i++) {
        sw_buf_printf(text, "%s%s", i ? "," : "", json_string_value(json_array_get(values, i)));
    }
    sw_buf_puts(text, ")");
}

static json_t *text_or_none(struct sw_buf *text)
{
    json_t *made = json_string(text->len ? text->bytes : "<none>");
    sw_buf_done(text);
    return made;
}

json_t *sw_sim_cell_selector(const json_t *selector)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    put_labels(&text, sw_sim_at(selector, "matchLabels"));
    const json_t *expressions = sw_sim_at(selector, "matchExpressions");
    for (size_t i = 0; i < json_array_size(expressions); i++) {
        put_expression(&text, json_array_get(expressions, i));
    }
    return text_or_none(&text);
}

json_t *sw_sim_cell_labels(const json_t *labels)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    put_labels(&text, labels);
    return text_or_none(&text);
}

json_t *sw_sim_cell_text(const json_t *object, const char *path, const char *absent)
{
    const json_t *found = sw_sim_at(object, path);
    if (json_is_integer(found)) {
        return json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(found));
    }
    const char *text = sw_sim_text_at(object, path);
    return json_string(*text ? text : absent);
}
