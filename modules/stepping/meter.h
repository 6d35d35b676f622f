/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the module. What depends on names of objects is not among them.
 *
 *     slipway_stepping_rollouts{phase}             SteppedRollouts in each phase
 *     slipway_stepping_results_total{result}       succeeded, retreated, rolled_back, failed (held
 *                                                  where it is)
 *     slipway_stepping_steps_total                 stops that were passed
 *     slipway_stepping_checks_total{type,result}   passed, failed
 *     slipway_stepping_hold_seconds                from the change that shows the stop to the hold
 *     slipway_stepping_overshoot_pods              Pods beyond the stop when it stood
 */
#ifndef SW_STEPPING_METER_H
#define SW_STEPPING_METER_H

#include <slipway/module.h>

#include "kind.h"

struct sw_metric;
struct sw_metric_family;
struct step_status;

struct step_meter {
    struct sw_metric_family *rollouts, *checks;
    struct sw_metric *succeeded, *retreated, *rolled_back, *failed;
    struct sw_metric *steps, *holds, *overshoot;
};

void step_meter_start(struct step_meter *meter, struct sw_instance *self);
/* Before the metrics are read. */
void step_meter_collect(struct sw_instance *self, struct step_meter *meter);
void step_meter_check(struct step_meter *meter, const struct step_check *check);
/* The status has become `now`. */
void step_meter_status(struct step_meter *meter, const char *old_phase, const char *old_activity,
                       int32_t old_step, const struct step_status *now);
void step_meter_hold(struct step_meter *meter, int64_t took_us);
void step_meter_overshoot(struct step_meter *meter, int32_t pods);

#endif
