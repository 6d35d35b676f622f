/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of requests: JSON, or YAML as kubectl and people send it. Plain scalars are what JSON
 * makes of the same letters; everything else is text.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/arena.h>

#include "api_internal.h"
#include "base/error.h"
#include "base/util.h"
#include "base/yaml.h"
#include "value.h"

static json_t *plain(const char *text)
{
    static const char *const yes[] = {"true", "True", "TRUE"};
    static const char *const no[] = {"false", "False", "FALSE"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(yes); i++) {
        if (strcmp(text, yes[i]) == 0) {
            return json_true();
        }
        if (strcmp(text, no[i]) == 0) {
            return json_false();
        }
    }
    json_t *number = json_loads(text, JSON_DECODE_ANY, NULL);
    if (json_is_number(number)) {
        return number;
    }
    json_decref(number);
    return json_string(text);
}

static json_t *from_yaml(const struct sw_yaml *node)
{
    if (node->type == SW_YAML_MAPPING) {
        json_t *object = json_object();
        for (const struct sw_yaml *member = node->first; member; member = member->next) {
            json_object_set_new(object, member->key, from_yaml(member));
        }
        return object;
    }
    if (node->type == SW_YAML_SEQUENCE) {
        json_t *array = json_array();
        for (const struct sw_yaml *element = node->first; element; element = element->next) {
            json_array_append_new(array, from_yaml(element));
        }
        return array;
    }
    if (sw_yaml_is_null(node)) {
        return json_null();
    }
    json_t *value = node->is_plain ? plain(node->text) : json_string(node->text);
    return value ? value : json_null();
}

json_t *sw_sim_read_body(const struct sw_sim_call *call, char **ret_why)
{
    json_error_t error;
    json_t *body = json_loadb(call->body, call->body_len, JSON_DECODE_ANY, &error);
    if (body) {
        return body;
    }
    if (strstr(call->content_type, "yaml")) {
        struct sw_arena *arena = sw_arena_new(0);
        struct sw_error why = {0};
        const struct sw_yaml *root = NULL;
        if (sw_yaml_parse(arena, "body", call->body, call->body_len, &root, &why)) {
            *ret_why = sw_asprintf("error parsing YAML: %s", why.text);
        } else {
            body = root ? from_yaml(root) : json_null();
        }
        sw_arena_free(arena);
        return body;
    }
    *ret_why = sw_asprintf("couldn't get version/kind; json parse error: %s", error.text);
    return NULL;
}
