/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: what happened to an object, for people. They go to every sink (Events, log) and never
 * block.
 */
#ifndef SLIPWAY_RECORD_H
#define SLIPWAY_RECORD_H

#include <slipway/module.h>
#include <slipway/object.h>

enum sw_record_type {
    SW_NORMAL,
    SW_WARNING,
};

struct sw_record {
    enum sw_record_type type;
    const char *reason;    /* CamelCase */
    const char *message;   /* at most 1 024 bytes; longer ones are cut */
    const char *component; /* name of the module that says it */
    /* of the object */
    const struct sw_kind *kind;
    const char *namespace_;
    const char *name;
    const char *uid;
    const char *resource_version;
};

SW_API SW_PRINTF(5, 6) void sw_record(struct sw_instance *self, const struct sw_object *object,
                                      enum sw_record_type type, const char *reason,
                                      const char *format, ...);

/* Called for each record, at once; the record is borrowed for the call. */
typedef void (*sw_sink_fn)(struct sw_instance *self, const struct sw_record *record);
SW_API int sw_sink_register(struct sw_instance *self, sw_sink_fn fn);

#endif
