/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kube-controller-manager knows of the objects of one kind: an informer's cache. It follows
 * the store with a lag of its own, so that controllers act on what was true a moment ago, and
 * indexes the objects by the workload that controls them.
 */
#ifndef TOOLS_SIM_VIEW_H
#define TOOLS_SIM_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "store.h"

struct sw_map;
struct sw_sim_kind;
struct sw_sim_view;

/* "namespace/name", as a key of maps; cut where it would be longer than any that the API takes. */
enum { SW_SIM_KEY_SIZE = 512 };
const char *sw_sim_key(char key[SW_SIM_KEY_SIZE], const char *namespace_, const char *name);

enum sw_sim_phase {
    SW_SIM_PENDING, /* in the order in which a ReplicaSet prefers to delete them */
    SW_SIM_UNKNOWN,
    SW_SIM_RUNNING,
    SW_SIM_SUCCEEDED,
    SW_SIM_FAILED,
};

/* What controllers ask of a Pod all the time, read once. */
struct sw_sim_pod {
    enum sw_sim_phase phase;
    bool is_ready, is_deleted;
    int64_t ready_us;   /* since when; 0 while it is not */
    int64_t created_us; /* creationTimestamp */
    int64_t restarts;   /* of the container with the most */
    const char *node;   /* "" where it has none; as long as the view */
};
bool sw_sim_pod_is_active(const struct sw_sim_pod *pod); /* neither ended nor being deleted */
bool sw_sim_pod_is_available(const struct sw_sim_pod *pod, int64_t min_ready_s, int64_t wall_us);

struct sw_sim_family;

struct sw_sim_item {
    const struct sw_sim_object *object;
    struct sw_sim_pod pod; /* of Pods alone */
    /* private */
    struct sw_link sibling; /* of the same family, or among the orphans */
    struct sw_sim_family *family;
};

/* Once the view has the change; either may be NULL, not both. before is valid during the call. */
typedef void (*sw_sim_view_fn)(void *arg, struct sw_sim_view *view,
                               const struct sw_sim_item *before, const struct sw_sim_item *after);

struct sw_sim_view *sw_sim_view_new(struct sw_loop *loop, const struct sw_sim_kind *kind,
                                    bool is_pods, sw_sim_view_fn on_change, void *arg);
struct sw_sim_view *sw_sim_view_free(struct sw_sim_view *view);
const struct sw_sim_kind *sw_sim_view_kind(const struct sw_sim_view *view);
void sw_sim_view_set_lag(struct sw_sim_view *view, uint64_t min_ms, uint64_t max_ms);

/* A change of the view's kind has happened in the store. */
void sw_sim_view_tell(struct sw_sim_view *view, const struct sw_sim_change *change);
/* Forgets all. */
void sw_sim_view_clear(struct sw_sim_view *view);
/* Takes over what the store has now, as a new list does; each object is told as added. Nobody may
 * have a document borrowed: the store is trimmed on the way. */
void sw_sim_view_fill(struct sw_sim_view *view, struct sw_sim_store *store);

/* All changes up to this version have arrived. */
bool sw_sim_view_has(const struct sw_sim_view *view, uint64_t version);
bool sw_sim_view_is_quiet(const struct sw_sim_view *view);

struct sw_sim_item *sw_sim_view_get(const struct sw_sim_view *view, const char *namespace_,
                                    const char *name);
/* Those that the object with this uid controls, and those that nobody controls. Each in the order
 * in which they came to be so. Returns what fn returned other than 0; fn changes nothing. */
int sw_sim_view_each_controlled(const struct sw_sim_view *view, const char *uid,
                                int (*fn)(void *arg, struct sw_sim_item *item), void *arg);
int sw_sim_view_each_orphan(const struct sw_sim_view *view,
                            int (*fn)(void *arg, struct sw_sim_item *item), void *arg);
int sw_sim_view_each(const struct sw_sim_view *view, int (*fn)(void *arg, struct sw_sim_item *item),
                     void *arg);

#endif
