/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of registrations.
 */
#include "runtime/registry.h"

#include "base/util.h"
#include "runtime/instance.h"

void sw_registry_init(struct sw_registry *registry)
{
    sw_link_init(&registry->arbiters);
    sw_link_init(&registry->listeners);
    sw_link_init(&registry->sinks);
    sw_link_init(&registry->admissions);
    sw_link_init(&registry->writes);
    sw_link_init(&registry->reads);
}

static void forget(struct sw_link *ring, const struct sw_instance *instance)
{
    SW_LIST_EACH (l, ring) {
        struct sw_registration *registration = container_of(l, struct sw_registration, link);
        if (registration->instance != instance)
            continue;
        sw_link_remove(l);
        sw_free(registration);
    }
}

void sw_registry_forget(struct sw_registry *registry, const struct sw_instance *instance)
{
    if (registry->hand == instance)
        registry->hand = NULL;
    forget(&registry->arbiters, instance);
    forget(&registry->listeners, instance);
    forget(&registry->sinks, instance);
    forget(&registry->admissions, instance);
    forget(&registry->writes, instance);
    forget(&registry->reads, instance);
}

void *sw_registry_add(struct sw_link *ring, struct sw_instance *instance, size_t size)
{
    sw_assert(instance->is_starting);
    struct sw_registration *registration = sw_malloc(size);

    registration->instance = instance;
    sw_link_init(&registration->link);
    sw_link_add_last(ring, &registration->link);
    return registration;
}
