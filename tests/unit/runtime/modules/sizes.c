/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The example of the README: a whole module. It writes an Event on a Deployment whose size changes.
 */
#include <slipway/apps.h>
#include <slipway/record.h>
#include <slipway/telemetry.h>
#include <slipway/watch.h>

struct state {
    struct sw_metric *changes;
};

static void on_delta(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    struct state *state = sw_state(self);

    (void)arg;
    if (delta->type != SW_MODIFIED)
        return;
    int from = sw_as_deployment(delta->old)->replicas, to = sw_as_deployment(delta->now)->replicas;
    if (from == to)
        return;
    sw_count(state->changes, 1);
    sw_record(self, delta->now, SW_NORMAL, "SizeChanged", "%d replicas were %d", to, from);
}

static int start(struct sw_instance *self, const void *config)
{
    struct state *state = sw_state(self);
    struct sw_watch_options watch = {.on_delta = on_delta};

    (void)config;
    state->changes =
        sw_counter(self, "slipway_size_changes_total", "Sizes seen to change.", NULL, NULL);
    return sw_watch(self, &sw_kind_deployment, &watch);
}

SW_API const struct sw_module sw_module_sizes = {
    SW_MODULE_HEAD("sizes"),
    .summary = "writes an Event on a Deployment whose size changes",
    .state_size = sizeof(struct state),
    .start = start,
};
