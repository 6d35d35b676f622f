/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of the module. Three kinds of them:
 *
 *   of the leader      what its own plan knows and does: turns, waits, hand-overs
 *   of the observer    on every replica, from the Deployments alone: overlaps
 *   per coordination   on every replica, from the stored status; the first so many coordinations
 *                      have series of their own, which go with them, and the rest is summed under
 *                      one name
 */
#ifndef SW_COORDINATION_METER_H
#define SW_COORDINATION_METER_H

#include <slipway/telemetry.h>

#include "space.h"

#define COORD_SERIES_MAX 900 /* a family has room for 1 000, with those of reasons */

enum coord_counted { /* per coordination, by the leader */
                     COORD_TURNS,
                     COORD_WAIT_SECONDS,
                     COORD_HANDOVERS,
                     COORD_HANDOVER_SECONDS,
                     COORD_COUNTED
};

enum coord_shown { /* per coordination, from the status */
                   COORD_ACTIVE,
                   COORD_WAITING,
                   COORD_OLDEST_WAIT,
                   COORD_TURN,
                   COORD_SUSPENDED,
                   COORD_SHOWN
};

enum { COORD_REASONS = 7 };

struct coord_meter {
    struct sw_instance *self;
    const struct space_table *spaces;
    /* of the leader */
    struct sw_metric *selected, *pending, *active, *groups;
    struct sw_metric *releases, *records, *lost, *failed;
    struct sw_metric *waited, *handed;
    struct coord_facts {
        int64_t selected, pending, active, groups;
    } total;
    /* of the observer */
    struct sw_metric *overlap;
    uint32_t over;       /* coordinations of which more roll than may */
    uint64_t counted_ms; /* until then their time is counted */
    /* per coordination */
    struct sw_metric_family *shown[COORD_SHOWN];
    struct sw_metric_family *counted[COORD_COUNTED];
    struct sw_metric_family *degraded;
    struct sw_metric *summed; /* how many have none of their own */
    uint32_t own, most;
    bool has_others; /* the series of the rest are there */
    bool has_other_reason[COORD_REASONS];
};

/* In start. */
void coord_meter_start(struct coord_meter *meter, struct sw_instance *self,
                       const struct space_table *spaces, uint32_t most);
/* At most so many have series of their own from now on. */
void coord_meter_set_most(struct coord_meter *meter, uint32_t most);

/* ---- the observer ---- */

/* The space has another set of coordinations, or one of them another spec. */
void coord_meter_look(struct coord_meter *meter, struct space *space);
/* A Deployment of the space changed. What comes from a list is of one moment, and counts when the
 * list is told to be whole. */
void coord_meter_see(struct coord_meter *meter, struct space *space,
                     const struct sw_deployment *old, const struct sw_deployment *now,
                     bool is_from_list);
void coord_meter_listed(struct coord_meter *meter);
/* Before the coordination is taken out of the space: its series go with it. */
void coord_meter_forget(struct coord_meter *meter, struct space *space, const char *name);

/* ---- the leader ---- */

/* What the last plan of the namespace found; NULL: nothing is known of it any more. */
void coord_meter_plan(struct coord_meter *meter, struct space *space,
                      const struct coord_result *result);
/* took_ms: from the request to its answer. */
void coord_meter_answer(struct coord_meter *meter, struct space *space,
                        const struct coord_action *action, enum sw_outcome outcome,
                        uint64_t took_ms);

#endif
