/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at what is not watched: which revisions a target has, how many Pods each, and for
 * StatefulSets and DaemonSets the Pods themselves. Two or three consistent reads, one after the
 * other, and one result that is kept until the next.
 */
#ifndef SW_STEPPING_LOOK_H
#define SW_STEPPING_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/kind.h>
#include <slipway/write.h>

#include "plan.h"

struct step_pod {
    const char *name, *uid;
    const char *revision; /* name; "": of none that is there */
    int64_t created_us;
    int32_t ordinal; /* of a StatefulSet's; else -1 */
    bool is_updated; /* of the newest revision */
    bool is_ready, is_available, is_deleting;
};

struct step_look {
    struct sw_arena *arena; /* this struct is in it */
    uint64_t at_ms;         /* when the first of its requests was sent */
    uint64_t came_ms;       /* when the last of them was answered */
    const char *target_uid, *target_version;
    int64_t target_generation;
    struct step_revision *revisions; /* the newest first; is_promoted is not filled in */
    size_t revision_count;
    const char *pod_selector; /* of the Pods of the newest revision, in text form; "": there is no
                                 such revision yet */
    const char *pod_owner_uid;
    const struct step_pod *pods; /* StatefulSet, DaemonSet */
    size_t pod_count;
    const char *current_revision; /* StatefulSet: Pods below the partition come back in it */
    int32_t first_ordinal;        /* StatefulSet: spec.ordinals.start */
};

struct step_look *step_look_free(struct step_look *look); /* takes NULL; returns NULL */

/* look: taken; NULL where the outcome is not SW_OK, and message says why. Exactly once, unless it
 * was cancelled or the module is stopped. */
typedef void (*step_look_fn)(struct sw_instance *self, void *arg, struct step_look *look,
                             enum sw_outcome outcome, const char *message);

struct step_looking; /* one under way */

struct step_lookings {
    struct step_looking *first;
};

/* NULL: the request could not be made, and fn does not come. */
struct step_looking *step_look_start(struct sw_instance *self, struct step_lookings *all,
                                     enum step_target_kind kind, const char *namespace_,
                                     const char *name, step_look_fn fn, void *arg);
/* fn does not come any more. Takes NULL. */
void step_look_cancel(struct step_looking *looking);
/* In the module's stop, when no answer comes any more. */
void step_lookings_free(struct step_lookings *all);
/* In the module's start. */
void step_look_declare(struct sw_instance *self);

/* The kind under which a revision's template is read: a ReplicaSet's or a ControllerRevision's.
 * step_template_of is its text. */
SW_NONNULL const struct sw_kind *step_template_kind(enum step_target_kind kind);
SW_NONNULL const struct sw_raw *step_template_of(const struct sw_object *object);

/* Of a DaemonSet: how many old Pods may go, at most `most`, so that replicas - stop of them stay.
 */
size_t step_look_most(const struct step_look *look, int32_t replicas, int32_t stop, size_t most);
/* Which Pods go next: those that serve nobody first. One that is available goes only while fewer
 * than `unavailable` of the `replicas` are not. */
struct step_choice {
    enum step_action_type type; /* BITE, CLEAR: of a StatefulSet, then the highest ordinal first.
                                   ADVANCE: old ones of a DaemonSet */
    const char *name;           /* BITE: the revision whose Pods stay */
    int32_t partition;          /* CLEAR: as it is */
    int32_t replicas, unavailable;
    size_t most;
};
/* How many, in ret_pods (room for most). */
size_t step_look_choose(const struct step_look *look, const struct step_choice *choice,
                        const struct step_pod **ret_pods);

#endif
