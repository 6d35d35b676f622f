/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and stopping one module, and what module.h offers it about itself.
 */
#include "runtime/instance.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "runtime/alarm.h"
#include "runtime/core.h"
#include "runtime/queue.h"

static struct sw_log log_for(const struct sw_core *core, const struct sw_module *module)
{
    struct sw_log log = core->log;

    log.name = module->name;
    return log;
}

static void unregister(struct sw_instance *instance)
{
    struct sw_core *core = instance->core;

    while (sw_link_is_used(&instance->alarms))
        sw_alarm_free(container_of(instance->alarms.next, struct sw_alarm, link));
    while (sw_link_is_used(&instance->queues))
        sw_queue_free(container_of(instance->queues.next, struct sw_queue, link));
    sw_telemetry_forget(instance);
    sw_kinds_forget(&core->kinds, instance);
    sw_writes_forget(&core->writes, instance);
    sw_reads_forget(&core->reads, instance);
    sw_fetches_forget(&core->fetches, instance);
    sw_registry_forget(&core->registry, instance);
    instance->leading_fns = sw_free(instance->leading_fns);
    instance->leading_count = 0;
}

static void instance_free(struct sw_instance *instance)
{
    sw_free(instance->state);
    sw_free(instance);
}

struct sw_instance *sw_instance_start(struct sw_core *core, const struct sw_module *module,
                                      const void *config, struct sw_error *error)
{
    struct sw_instance *instance = SW_NEW(struct sw_instance);
    int code = 0;

    instance->core = core;
    instance->module = module;
    instance->state = sw_malloc(module->state_size ? module->state_size : 1);
    instance->config = config;
    instance->log = log_for(core, module);
    sw_link_init(&instance->queues);
    sw_link_init(&instance->alarms);

    instance->is_starting = true;
    if (module->start)
        code = module->start(instance, config);
    instance->is_starting = false;
    if (!code)
        return instance;

    const char *why = instance->failure.text[0] ? instance->failure.text : sw_strerror(code);
    sw_error_set(error, code, "module %s does not start: %s", module->name, why);
    unregister(instance);
    instance_free(instance);
    return NULL;
}

int sw_instance_reconfigure(struct sw_instance *instance, const void *config,
                            struct sw_error *error)
{
    instance->failure = (struct sw_error){0};
    int code = instance->module->reconfigure(instance, config);

    if (!code) {
        instance->config = config;
        return 0;
    }
    const char *why = instance->failure.text[0] ? instance->failure.text : sw_strerror(code);
    return sw_error_set(error, code, "module %s refuses it: %s", instance->module->name, why);
}

void sw_instance_stop(struct sw_instance *instance)
{
    unregister(instance);
    if (instance->module->stop)
        instance->module->stop(instance);
    instance_free(instance);
}

void sw_instance_tell_leading(struct sw_instance *instance, bool is_leading)
{
    for (size_t i = 0; i < instance->leading_count; i++)
        instance->leading_fns[i](instance, is_leading);
}

/* ---- module.h ---- */

void *sw_state(struct sw_instance *self)
{
    return self->state;
}

const char *sw_name(const struct sw_instance *self)
{
    return self->module->name;
}

const void *sw_config(const struct sw_instance *self)
{
    return self->config;
}

int sw_fail(struct sw_instance *self, int code, const char *format, ...)
{
    va_list args;

    self->failure.code = code;
    va_start(args, format);
    vsnprintf(self->failure.text, sizeof(self->failure.text), format, args);
    va_end(args);
    return code;
}

void sw_on_leading(struct sw_instance *self, sw_leading_fn fn)
{
    sw_assert(self->is_starting);
    self->leading_fns =
        sw_realloc(self->leading_fns, self->leading_count + 1, sizeof(*self->leading_fns));
    self->leading_fns[self->leading_count++] = fn;
}

bool sw_is_leading(const struct sw_instance *self)
{
    return sw_leading_is_on(&self->core->leading);
}

int64_t sw_term(const struct sw_instance *self)
{
    return sw_leading_term(&self->core->leading);
}

const char *sw_self_username(const struct sw_instance *self)
{
    return self->core->username ? self->core->username : "";
}
