/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cluster looks like: the coordinations, SteppedRollouts and Deployments of a namespace or
 * of all, as typed views, and who selects whom. Filled by a list (ks_world_fetch) or kept by a
 * watch (watch.c).
 */
#ifndef KS_WORLD_H
#define KS_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include <slipway/apps.h>
#include <slipway/selector.h>

#include "kind.h" /* of modules/coordination */
#include "stepping/kind.h"

struct sw_arena;
struct ks_answer;
struct ks_session;

struct ks_group {
    const struct coordination *c;
    const struct sw_selector *selector; /* NULL: absent or invalid */
    const char *selector_error;
};

struct ks_world {
    const struct ks_group *groups; /* by namespace, then name */
    size_t group_count;
    const struct sw_deployment *const *deployments; /* by namespace, then name */
    size_t deployment_count;
    const struct stepped *const *rollouts; /* by namespace, then name */
    size_t rollout_count;
    bool has_rollouts; /* the cluster knows the kind */
};

/* Sorts and parses; the objects are borrowed, the world and its selectors are the arena's. */
struct ks_world *ks_world_new(struct sw_arena *arena, const struct coordination *const *groups,
                              size_t group_count, const struct sw_deployment *const *deployments,
                              size_t deployment_count);
void ks_world_set_rollouts(struct sw_arena *arena, struct ks_world *world,
                           const struct stepped *const *rollouts, size_t count);
/* All objects of a kind, in the order of the API server, until the session ends. False: see answer;
 * namespace_ NULL: all. */
bool ks_list(struct ks_session *session, const struct sw_kind *kind, const char *namespace_,
             const struct sw_object *const **ret_objects, size_t *ret_count,
             struct ks_answer *ret_answer);
/* NULL: it has been said why not. namespace_ NULL: all. */
struct ks_world *ks_world_fetch(struct ks_session *session, const char *namespace_);

const struct sw_deployment *ks_world_deployment(const struct ks_world *world,
                                                const char *namespace_, const char *name);
const struct ks_group *ks_world_group(const struct ks_world *world, const char *namespace_,
                                      const char *name);
/* By labels, and not ignored. */
bool ks_selects(const struct ks_group *group, const struct sw_deployment *deployment);
/* Of status.deploymentStates; NULL: it has none. */
const struct coord_entry *ks_entry(const struct coordination *c,
                                   const struct sw_deployment *deployment);
/* Of status.activeDeployments (or activeDeployment). */
bool ks_is_active(const struct coordination *c, const struct sw_deployment *deployment);
/* Pods of the new template that are available, as far as its status can tell. */
int32_t ks_done(const struct sw_deployment *deployment);
/* "" where there is none. */
const char *ks_annotation(const struct sw_object *object, const char *key);
/* Behind the "/" of "namespace/name". */
const char *ks_bare_name(const char *full);

#endif
