/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module `coordination`: of a labelled group of Deployments one rolls at a time. Its
 * configuration has one key, what a Deployment with nothing to roll looks like where its
 * coordination does not say:
 *
 *     atRest: Paused     # or Running
 */
#include <cyaml/cyaml.h>

#include "shell.h"

static const cyaml_strval_t at_rest[] = {
    {"Paused", COORD_PAUSED},
    {"Running", COORD_RUNNING},
};

static const cyaml_schema_field_t config_fields[] = {
    CYAML_FIELD_ENUM("atRest", CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT, struct coord_config,
                     at_rest, at_rest, CYAML_ARRAY_LEN(at_rest)),
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
}

static int start(struct sw_instance *self, const void *config)
{
    take_over(self, config);
    return coord_shell_start(self);
}

static int reconfigure(struct sw_instance *self, const void *config)
{
    take_over(self, config);
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
