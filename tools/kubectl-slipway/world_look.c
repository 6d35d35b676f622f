/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who selects whom, and where it stands.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#include <slipway/arbiter.h>

#include "base/util.h"

/* ---- looking ---- */

const char *ks_annotation(const struct sw_object *object, const char *key)
{
    const char *value = sw_annotation(object, key);

    return value ? value : "";
}

const char *ks_bare_name(const char *full)
{
    const char *slash = strchr(full, '/');

    return slash ? slash + 1 : full;
}

bool ks_selects(const struct ks_group *group, const struct sw_deployment *deployment)
{
    return strcmp(group->c->meta.namespace_, deployment->meta.namespace_) == 0 &&
           strcmp(ks_annotation(&deployment->meta, SW_IGNORE), "true") != 0 &&
           sw_selector_matches(group->selector, &deployment->meta.labels);
}

static bool is_full_name(const char *full, const struct sw_object *object)
{
    size_t len = strlen(object->namespace_);

    return strncmp(full, object->namespace_, len) == 0 && full[len] == '/' &&
           strcmp(full + len + 1, object->name) == 0;
}

const struct coord_entry *ks_entry(const struct coordination *c,
                                   const struct sw_deployment *deployment)
{
    const struct coord_entry *entries = c->states.at;

    for (uint32_t i = 0; i < c->states.count; i++)
        if (is_full_name(entries[i].name, &deployment->meta))
            return &entries[i];
    return NULL;
}

bool ks_is_active(const struct coordination *c, const struct sw_deployment *deployment)
{
    for (uint32_t i = 0; i < c->active_deployments.count; i++)
        if (is_full_name(c->active_deployments.at[i], &deployment->meta))
            return true;
    return is_full_name(c->active_deployment, &deployment->meta);
}

/* New and available, as far as counts can tell: of the old template there are replicas - updated.
 */
int32_t ks_done(const struct sw_deployment *d)
{
    int32_t old = SW_MAX(d->status_replicas - d->updated_replicas, 0);
    int32_t sure = SW_MAX(d->available_replicas - old, 0);

    return SW_MIN(SW_MIN(d->updated_replicas, sure), d->replicas);
}

static int compare_objects(const struct sw_object *a, const struct sw_object *b)
{
    int order = strcmp(a->namespace_, b->namespace_);

    return order ? order : strcmp(a->name, b->name);
}

static int compare_deployments(const void *a, const void *b)
{
    const struct sw_deployment *x = *(const struct sw_deployment *const *)a,
                               *y = *(const struct sw_deployment *const *)b;

    return compare_objects(&x->meta, &y->meta);
}

static int compare_rollouts(const void *a, const void *b)
{
    const struct stepped *x = *(const struct stepped *const *)a,
                         *y = *(const struct stepped *const *)b;

    return compare_objects(&x->meta, &y->meta);
}

static int compare_groups(const void *a, const void *b)
{
    const struct ks_group *x = a, *y = b;

    return compare_objects(&x->c->meta, &y->c->meta);
}

const struct sw_deployment *ks_world_deployment(const struct ks_world *world,
                                                const char *namespace_, const char *name)
{
    const struct sw_deployment wanted = {.meta = {.namespace_ = namespace_, .name = name}};
    const struct sw_deployment *key = &wanted;
    const struct sw_deployment *const *found = bsearch(
        &key, world->deployments, world->deployment_count, sizeof(key), compare_deployments);

    return found ? *found : NULL;
}

const struct ks_group *ks_world_group(const struct ks_world *world, const char *namespace_,
                                      const char *name)
{
    const struct coordination wanted = {.meta = {.namespace_ = namespace_, .name = name}};
    const struct ks_group key = {.c = &wanted};

    return bsearch(&key, world->groups, world->group_count, sizeof(key), compare_groups);
}

/* ---- making one ---- */

static void free_selector(void *arg)
{
    sw_selector_free(arg);
}

static void read_selector(struct sw_arena *arena, struct ks_group *group)
{
    const struct sw_raw *raw = &group->c->selector;
    struct sw_selector *selector;
    char why[256];

    group->selector_error = "";
    if (!raw->text) {
        group->selector_error = "spec.labelSelector is absent";
    } else if (sw_selector_parse(raw->text, raw->len, &selector, why, sizeof(why))) {
        group->selector_error = sw_arena_printf(arena, "spec.labelSelector: %s", why);
    } else {
        group->selector = selector;
        sw_arena_on_free(arena, free_selector, selector);
    }
}

struct ks_world *ks_world_new(struct sw_arena *arena, const struct coordination *const *groups,
                              size_t group_count, const struct sw_deployment *const *deployments,
                              size_t deployment_count)
{
    struct ks_world *world = SW_ARENA_NEW(arena, struct ks_world);
    struct ks_group *own = SW_ARENA_ARRAY(arena, group_count + 1, struct ks_group);
    const struct sw_deployment **sorted =
        SW_ARENA_ARRAY(arena, deployment_count + 1, const struct sw_deployment *);

    for (size_t i = 0; i < group_count; i++) {
        own[i].c = groups[i];
        read_selector(arena, &own[i]);
    }
    for (size_t i = 0; i < deployment_count; i++)
        sorted[i] = deployments[i];
    qsort(own, group_count, sizeof(*own), compare_groups);
    qsort(sorted, deployment_count, sizeof(struct sw_deployment *), compare_deployments);
    *world = (struct ks_world){own, group_count, sorted, deployment_count, NULL, 0, false};
    return world;
}

void ks_world_set_rollouts(struct sw_arena *arena, struct ks_world *world,
                           const struct stepped *const *rollouts, size_t count)
{
    const struct stepped **sorted = SW_ARENA_ARRAY(arena, count + 1, const struct stepped *);

    for (size_t i = 0; i < count; i++)
        sorted[i] = rollouts[i];
    qsort(sorted, count, sizeof(struct stepped *), compare_rollouts);
    world->rollouts = sorted;
    world->rollout_count = count;
    world->has_rollouts = true;
}
