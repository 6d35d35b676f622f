/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shell around the plan: one queue of SteppedRollouts; a run collects the snapshot, carries the
 * actions out and reports the answers. It decides nothing.
 */
#ifndef SW_STEPPING_SHELL_H
#define SW_STEPPING_SHELL_H

#include <slipway/module.h>

#include "index.h"
#include "meter.h"
#include "round.h"

struct step_config {
    uint32_t rounds_at_once;
    bool watches_metric_templates;
};

struct step_state {
    struct step_index *index;
    struct sw_queue *queue;   /* "namespace/name" of SteppedRollouts */
    struct sw_queue *orphans; /* targets that bear traces of us and that nobody steps */
    bool is_leading;
    uint64_t leading; /* number of the leadership: answers of an earlier one are not for us */
    struct step_call *calls; /* carry.c: actions under way */
    struct step_lookings lookings;
    struct step_rounds *rounds;
    struct step_rounding *waiting, **waiting_end; /* asking.c: rounds that wait for their turn */
    uint32_t rounds_under_way, rounds_at_once;
    struct step_meter meter;
};

/* In start: subscribes to everything. */
int step_shell_start(struct sw_instance *self, bool watches_metric_templates);
void step_shell_stop(struct sw_instance *self);

/* Runs the plan when the loop comes round. */
void step_shell_wake(struct sw_instance *self, const struct step_entry *entry);
/* The SteppedRollout as the store has it; NULL: it is gone. */
const struct stepped *step_shell_object(struct sw_instance *self, const struct step_entry *entry);
/* Its target; false: there is none. What others say of it is in it. */
bool step_shell_target(struct sw_instance *self, const struct step_entry *entry,
                       struct sw_arena *arena, struct step_target *ret_target);
/* To the SteppedRollout, its target, and its event webhooks. */
void step_shell_say(struct sw_instance *self, const struct step_entry *entry, const char *phase,
                    const struct step_remark *remarks);

/* ---- carry.c: actions ---- */

/* What the actions of one run live in, until the last of them is answered. */
struct step_kept {
    struct sw_arena *arena;
    uint32_t users;
};

SW_NONNULL struct step_kept *step_kept_new(void);
void step_kept_unref(struct step_kept *kept);
void step_carry_out(struct sw_instance *self, struct step_entry *entry,
                    const struct step_action *action, struct step_kept *kept, const char *run_id);
/* In the module's stop, when no answer comes any more. */
void step_calls_free(struct step_state *state);

/* ---- asking.c: rounds ---- */

void step_ask(struct sw_instance *self, struct step_entry *entry, const struct step_action *action);
void step_ask_cancel(struct sw_instance *self, struct step_entry *entry);
/* Cancels. */
void step_ask_free(struct sw_instance *self, struct step_entry *entry);
/* In the module's stop: runners and alarms are the core's and round.h's by then. */
void step_ask_drop(struct step_entry *entry);

/* ---- orphan.c ---- */

/* Traces of a SteppedRollout that is gone, or steps something else now: what was saved is put back
 * and the target let go. */
void step_orphans_start(struct sw_instance *self);
void step_orphans_look_at(struct sw_instance *self, const struct sw_object *object);
void step_orphans_look_at_all(struct sw_instance *self);

#endif
