/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is counted where it happens, and the phases, which are counted when somebody asks.
 */
#include "meter.h"

#include <string.h>

#include <slipway/telemetry.h>
#include <slipway/watch.h>

#include "plan.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char *const phases[] = {
    "Initializing", "Initialized", "Waiting", "Progressing", "WaitingPromotion",
    "Promoting",    "Succeeded",   "Failed",  "Held",        "",
};

/* 0.5 ms is what the hold of a step should take; 10 s is where nobody is there any more. */
static const double hold_seconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                      0.1,    0.25,  0.5,    1,     2.5,  5,     10};
static const double overshoot_pods[] = {0, 1, 2, 3, 5, 10, 25, 50, 100};

static struct sw_metric *result(struct sw_instance *self, const char *value)
{
    return sw_counter(self, "slipway_stepping_results_total", "Rollouts that ended, by result.",
                      "result", value);
}

void step_meter_start(struct step_meter *meter, struct sw_instance *self)
{
    static const char *const phase[] = {"phase", NULL};
    static const char *const check[] = {"type", "result", NULL};

    meter->rollouts =
        sw_gauge_family(self, "slipway_stepping_rollouts", "SteppedRollouts in each phase.", phase);
    meter->checks = sw_counter_family(self, "slipway_stepping_checks_total",
                                      "Checks that were made, by result.", check);
    meter->succeeded = result(self, "succeeded");
    meter->retreated = result(self, "retreated");
    meter->rolled_back = result(self, "rolled_back");
    meter->failed = result(self, "failed");
    meter->steps =
        sw_counter(self, "slipway_stepping_steps_total", "Stops that were passed.", NULL, NULL);
    meter->holds = sw_histogram(self, "slipway_stepping_hold_seconds",
                                "From the change that shows a step's last Pod updated to the "
                                "answer to the hold.",
                                hold_seconds, COUNT(hold_seconds));
    meter->overshoot = sw_histogram(self, "slipway_stepping_overshoot_pods",
                                    "Pods updated beyond the stop when the hold stood.",
                                    overshoot_pods, COUNT(overshoot_pods));
}

static bool count_phase(void *arg, const struct sw_object *object)
{
    const struct stepped *stepped = step_as_stepped(object);
    uint32_t *counts = arg;
    size_t i = 0;

    while (i + 1 < COUNT(phases) && strcmp(stepped->phase, phases[i]) != 0)
        i++;
    counts[i]++;
    return true;
}

void step_meter_collect(struct sw_instance *self, struct step_meter *meter)
{
    uint32_t counts[COUNT(phases)] = {0};

    sw_each(self, &step_kind, NULL, NULL, count_phase, counts);
    for (size_t i = 0; i < COUNT(phases); i++) {
        const char *values[] = {phases[i][0] ? phases[i] : "None", NULL};
        sw_measure(sw_series(meter->rollouts, values), counts[i]);
    }
}

void step_meter_check(struct step_meter *meter, const struct step_check *check)
{
    const char *values[] = {check->type, check->has_passed ? "passed" : "failed", NULL};

    sw_count(sw_series(meter->checks, values), 1);
}

/* It became so only now. */
static bool becomes(const char *old, const char *now, const char *what)
{
    return strcmp(old, what) != 0 && strcmp(now, what) == 0;
}

void step_meter_status(struct step_meter *meter, const char *old_phase, const char *old_activity,
                       int32_t old_step, const struct step_status *now)
{
    if (old_step > 0 && now->current_step > old_step)
        sw_count(meter->steps, now->current_step - old_step);
    if (becomes(old_phase, now->phase, "Succeeded")) {
        sw_count(meter->steps, old_step > 0);
        sw_count(meter->succeeded, 1);
    }
    if (becomes(old_activity, now->activity, "Retreated"))
        sw_count(meter->retreated, 1);
    else if (becomes(old_activity, now->activity, "RolledBack"))
        sw_count(meter->rolled_back, 1);
    else if (becomes(old_activity, now->activity, "Held") && strcmp(now->phase, "Failed") == 0)
        sw_count(meter->failed, 1);
}

void step_meter_hold(struct step_meter *meter, int64_t took_us)
{
    sw_observe(meter->holds, (double)(took_us > 0 ? took_us : 0) / 1e6);
}

void step_meter_overshoot(struct step_meter *meter, int32_t pods)
{
    sw_observe(meter->overshoot, pods > 0 ? pods : 0);
}
