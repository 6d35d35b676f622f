/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: one line in the log, and a call to every sink.
 */
#include <slipway/record.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <slipway/field.h>

#include "base/log.h"
#include "base/utf8.h"
#include "base/util.h"
#include "runtime/core.h"
#include "runtime/instance.h"

/* core/v1 Event: what kubectl shows and the newer API allows. */
enum { MESSAGE_LIMIT_BYTES = 1024 };

struct sink {
    struct sw_registration registration;
    sw_sink_fn fn;
};

int sw_sink_register(struct sw_instance *self, sw_sink_fn fn)
{
    struct sink *sink = sw_registry_add(&self->core->registry.sinks, self, sizeof(*sink));

    sink->fn = fn;
    return 0;
}

/* Cuts text to at most limit bytes, between two characters. */
static void cut(char *text, size_t limit)
{
    size_t len = strlen(text);

    if (len <= limit)
        return;
    len = limit;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    text[len] = '\0';
}

static void log_record(const struct sw_instance *self, const struct sw_record *record)
{
    const struct sw_field fields[] = {
        SW_STR("reason", record->reason),   SW_STR("message", record->message),
        SW_STR("kind", record->kind->kind), SW_STR("namespace", record->namespace_),
        SW_STR("name", record->name),       SW_FIELD_LAST,
    };

    /* The reason is a constant of its module, as messages of the log are. */
    sw_log_write(&self->log, record->type == SW_WARNING ? SW_LEVEL_WARN : SW_LEVEL_INFO,
                 record->reason, fields);
}

void sw_record(struct sw_instance *self, const struct sw_object *object, enum sw_record_type type,
               const char *reason, const char *format, ...)
{
    const struct sw_link *ring = &self->core->registry.sinks;
    char message[MESSAGE_LIMIT_BYTES + 4]; /* so that a character across the limit is seen whole */
    struct sw_record record = {
        .type = type,
        .reason = reason,
        .message = message,
        .component = self->module->name,
        .kind = object->kind,
        .namespace_ = object->namespace_,
        .name = object->name,
        .uid = object->uid,
        .resource_version = object->resource_version,
    };
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    cut(message, MESSAGE_LIMIT_BYTES);
    log_record(self, &record);
    for (struct sw_link *l = ring->next; l != ring; l = l->next) {
        struct sw_registration *registration = container_of(l, struct sw_registration, link);
        const struct sink *sink = container_of(registration, struct sink, registration);
        sink->fn(registration->instance, &record);
    }
}
