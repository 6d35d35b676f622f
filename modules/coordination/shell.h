/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shell around the plan: one queue of namespaces; a run collects the snapshot, carries the
 * actions out and reports the answers. It decides nothing.
 */
#ifndef SW_COORDINATION_SHELL_H
#define SW_COORDINATION_SHELL_H

#include <slipway/module.h>

#include "meter.h"

struct coord_config {
    int at_rest; /* enum coord_at_rest */
    uint32_t series_limit;
};

enum coord_at_rest {
    COORD_PAUSED,
    COORD_RUNNING,
};

struct coord_state {
    struct space_table *spaces;
    struct sw_queue *queue;
    bool rests_running;
    bool is_leading;
    uint64_t leading; /* number of the leadership: answers of an earlier one are not for us */
    uint64_t lists;
    uint64_t listed_ms;
    uint32_t series_limit;
    struct coord_meter meter;
    struct coord_call *calls; /* requests under way */
};

/* In start: subscribes to everything. */
int coord_shell_start(struct sw_instance *self);
void coord_shell_look_at_all(struct sw_instance *self);
void coord_shell_stop(struct sw_instance *self);

#endif
