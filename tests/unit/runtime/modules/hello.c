/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole module: it greets every Deployment that it sees, once, and counts the greetings. With the
 * key `greeting` in modules.d/hello.yaml the words are others.
 */
#include <cyaml/cyaml.h>

#include <slipway/apps.h>
#include <slipway/queue.h>
#include <slipway/telemetry.h>
#include <slipway/watch.h>

struct config {
    char *greeting;
};

static const cyaml_schema_field_t config_fields[] = {
    CYAML_FIELD_STRING_PTR("greeting", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config,
                           greeting, 1, 80),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t config_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct config, config_fields),
};

struct state {
    struct sw_queue *queue;
    struct sw_metric *greetings;
};

/* The change only says where to look; the work is done when its turn comes. */
static void on_delta(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    struct state *state = sw_state(self);

    (void)arg;
    if (delta->type == SW_ADDED)
        sw_queue_add(state->queue, delta->now->name);
}

static enum sw_result greet(struct sw_instance *self, void *arg, struct sw_run *run)
{
    struct state *state = sw_state(self);
    const struct config *config = sw_config(self);

    (void)arg;
    sw_info(self, config->greeting ? config->greeting : "hello",
            SW_STR("deployment", sw_run_key(run)));
    sw_count(state->greetings, 1);
    return SW_DONE;
}

static int start(struct sw_instance *self, const void *config)
{
    struct state *state = sw_state(self);
    struct sw_queue_options queue = {.name = "hello", .fn = greet, .also_on_followers = true};
    struct sw_watch_options watch = {.on_delta = on_delta};

    (void)config;
    state->queue = sw_queue_new(self, &queue);
    state->greetings = sw_counter(self, "slipway_greetings_total", "Greetings.", NULL, NULL);
    return sw_watch(self, &sw_kind_deployment, &watch);
}

/* Nothing is kept of the old one: greet asks for the configuration each time. */
static int reconfigure(struct sw_instance *self, const void *config)
{
    (void)self;
    (void)config;
    return 0;
}

SW_API const struct sw_module sw_module_hello = {
    SW_MODULE_HEAD("hello"),
    .summary = "greets every Deployment that it sees",
    .config_schema = &config_schema,
    .config_size = sizeof(struct config),
    .state_size = sizeof(struct state),
    .start = start,
    .reconfigure = reconfigure,
};
