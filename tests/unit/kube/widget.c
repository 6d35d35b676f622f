/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the kind that binds one of everything. */
#include "widget.h"

static const struct sw_bind screw_fields[] = {
    SW_BIND("/size", SW_BIND_INT32, struct widget_screw, size, .otherwise = 8),
    SW_BIND_END,
};

static const struct sw_bind part_fields[] = {
    SW_BIND("/name", SW_BIND_STRING, struct widget_part, name),
    SW_BIND("/look/colour", SW_BIND_ENUM, struct widget_part, colour),
    SW_BIND("/count", SW_BIND_INT32, struct widget_part, count, .otherwise = 1),
    SW_BIND("/tags", SW_BIND_STRINGS, struct widget_part, tags),
    SW_BIND("/screws", SW_BIND_LIST, struct widget_part, screws, .element = screw_fields,
            .element_size = sizeof(struct widget_screw)),
    SW_BIND_END,
};

static const struct sw_bind widget_fields[] = {
    SW_BIND("/spec/text", SW_BIND_STRING, struct widget, text),
    SW_BIND("/spec/colour", SW_BIND_ENUM, struct widget, colour),
    SW_BIND("/spec/small", SW_BIND_INT32, struct widget, small, .otherwise = -7),
    SW_BIND("/spec/large", SW_BIND_INT64, struct widget, large, .otherwise = INT64_MAX),
    SW_BIND("/spec/isOn", SW_BIND_BOOL, struct widget, is_on, .otherwise = true),
    SW_BIND("/spec/extra", SW_BIND_PRESENT, struct widget, has_extra),
    SW_BIND("/spec/since", SW_BIND_TIME, struct widget, since_us),
    SW_BIND("/spec/share", SW_BIND_INT_OR_PERCENT, struct widget, share),
    SW_BIND("/spec/strings", SW_BIND_STRINGS, struct widget, strings, .limit = 40),
    SW_BIND("/spec/map", SW_BIND_LABELS, struct widget, map, .limit = 40),
    SW_BIND("/status/conditions", SW_BIND_CONDITIONS, struct widget, conditions),
    SW_BIND("/status/parts", SW_BIND_LIST, struct widget, parts, .element = part_fields,
            .element_size = sizeof(struct widget_part)),
    SW_BIND("/spec/template", SW_BIND_HASH, struct widget, hash),
    SW_BIND("/status/parts", SW_BIND_HASH, struct widget, part_hash),
    SW_BIND("/spec/raw", SW_BIND_RAW, struct widget, raw, .limit = 200),
    SW_BIND("/spec/a~1b~0c/odd key", SW_BIND_STRING, struct widget, odd),
    SW_BIND("/spec/template/spec/inner", SW_BIND_INT32, struct widget, inner),
    SW_BIND_END,
};

static const char *const widget_annotations[] = {"example.com/", "whole", NULL};

const struct sw_kind widget_kind = {
    .group = "example.com",
    .version = "v1",
    .kind = "Widget",
    .plural = "widgets",
    .size = sizeof(struct widget),
    .fields = widget_fields,
    .annotations = widget_annotations,
};
