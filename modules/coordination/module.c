/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module `coordination`: of a labelled group of Deployments one rolls at a time. Its
 * configuration says what a Deployment with nothing to roll looks like where its coordination does
 * not say, and how many coordinations have metrics of their own:
 *
 *     atRest: Paused     # or Running
 *     seriesLimit: 500
 */
#include <cyaml/cyaml.h>

#include <slipway/config.h>

#include "shell.h"

#define SERIES_LIMIT 500

static const cyaml_strval_t at_rest[] = {
    {"Paused", COORD_PAUSED},
    {"Running", COORD_RUNNING},
};

static const cyaml_schema_field_t config_fields[] = {
    CYAML_FIELD_ENUM("atRest", CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT, struct coord_config,
                     at_rest, at_rest, CYAML_ARRAY_LEN(at_rest)),
    SW_CONFIG_INT("seriesLimit", CYAML_FLAG_OPTIONAL, struct coord_config, series_limit, 0,
                  COORD_SERIES_MAX, SERIES_LIMIT),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t config_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct coord_config, config_fields),
};

static void take_over(struct sw_instance *self, const void *config)
{
    struct coord_state *state = sw_state(self);
    const struct coord_config *values = config;

    state->rests_running = values && values->at_rest == COORD_RUNNING;
    state->series_limit = values ? values->series_limit : SERIES_LIMIT;
}

static int start(struct sw_instance *self, const void *config)
{
    take_over(self, config);
    return coord_shell_start(self);
}

static int reconfigure(struct sw_instance *self, const void *config)
{
    struct coord_state *state = sw_state(self);

    take_over(self, config);
    coord_meter_set_most(&state->meter, state->series_limit);
    coord_shell_look_at_all(self);
    return 0;
}

static void stop(struct sw_instance *self)
{
    coord_shell_stop(self);
}

static const char *const needs[] = {"pausing", NULL};

SW_API const struct sw_module sw_module_coordination = {
    SW_MODULE_HEAD("coordination"),
    .summary = "of a labelled group of Deployments one rolls at a time",
    .needs = needs,
    .config_schema = &config_schema,
    .config_size = sizeof(struct coord_config),
    .state_size = sizeof(struct coord_state),
    .start = start,
    .reconfigure = reconfigure,
    .stop = stop,
};
