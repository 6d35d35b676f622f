/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module `stepping`: a rollout advances, is held, analysed, and let go on, step by step; it is
 * taken back where it fails. Its configuration says how many rounds of checks may be under way at
 * the same time (each takes some KiB; what comes beyond waits for its turn), and whether
 * MetricTemplates of Flagger are known:
 *
 *     maxConcurrentRounds: 10000
 *     metricTemplates: true
 */
#include <cyaml/cyaml.h>

#include <slipway/config.h>

#include "shell.h"

#include <errno.h>

#define ROUNDS_AT_ONCE 10000

static const cyaml_schema_field_t config_fields[] = {
    SW_CONFIG_INT("maxConcurrentRounds", CYAML_FLAG_OPTIONAL, struct step_config, rounds_at_once, 1,
                  1000000, ROUNDS_AT_ONCE),
    SW_CONFIG_BOOL("metricTemplates", CYAML_FLAG_OPTIONAL, struct step_config,
                   watches_metric_templates, true),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t config_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct step_config, config_fields),
};

static void take_over(struct sw_instance *self, const void *config)
{
    struct step_state *state = sw_state(self);
    const struct step_config *values = config;

    state->rounds_at_once = values ? values->rounds_at_once : ROUNDS_AT_ONCE;
}

static int start(struct sw_instance *self, const void *config)
{
    const struct step_config *values = config;

    take_over(self, config);
    return step_shell_start(self, !values || values->watches_metric_templates);
}

static int reconfigure(struct sw_instance *self, const void *config)
{
    const struct step_config *old = sw_config(self), *values = config;

    if (values && old && values->watches_metric_templates != old->watches_metric_templates)
        return sw_fail(self, -ENOTSUP, "metricTemplates cannot change without a restart");
    take_over(self, config);
    return 0;
}

static void stop(struct sw_instance *self)
{
    step_shell_stop(self);
}

static const char *const needs[] = {"pausing", NULL};

SW_API const struct sw_module sw_module_stepping = {
    SW_MODULE_HEAD("stepping"),
    .summary = "a rollout that stops at each step, is analysed, and goes on or is taken back",
    .needs = needs,
    .config_schema = &config_schema,
    .config_size = sizeof(struct step_config),
    .state_size = sizeof(struct step_state),
    .start = start,
    .reconfigure = reconfigure,
    .stop = stop,
};
