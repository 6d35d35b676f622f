/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a Pod is to behave, from three sources, each setting on its own: rules that were told live,
 * the one told last first; annotations kubelets.slipway.dev/NAME of the Pod; defaults. What the
 * settings mean stands in tools/kubelets --help; they are the same here.
 */
#ifndef TOOLS_SIM_POD_RULES_H
#define TOOLS_SIM_POD_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_error;
struct sw_selector;
struct sw_sim_object;
struct sw_sim_pod_rules;

#define SW_SIM_STOP_GRACE UINT64_MAX /* stop=grace: the whole grace period */

struct sw_sim_pod_settings {
    uint64_t start_ms, stop_ms, flap_ms;
    bool is_ready;
    const char *fail; /* "" or a reason; static */
    bool never_runs;  /* of fail: its container never ran */
};

struct sw_sim_pod_rules *sw_sim_pod_rules_new(void);
struct sw_sim_pod_rules *sw_sim_pod_rules_free(struct sw_sim_pod_rules *rules);

/* told: an object of settings. -EINVAL: *error is a sentence; nothing is changed. */
int sw_sim_pod_rules_default(struct sw_sim_pod_rules *rules, const json_t *told,
                             struct sw_error *error);
/* told: settings, and namespace, pod, selector to say for which Pods. Told again means told last.
 */
int sw_sim_pod_rules_set(struct sw_sim_pod_rules *rules, const char *name, const json_t *told,
                         struct sw_error *error);
/* NULL: all of them. How many there were. */
size_t sw_sim_pod_rules_remove(struct sw_sim_pod_rules *rules, const char *name);
/* {"start": 0.1, ...}, times in seconds; and [{"name", ..., as told}]. New. */
json_t *sw_sim_pod_rules_defaults(const struct sw_sim_pod_rules *rules);
json_t *sw_sim_pod_rules_list(const struct sw_sim_pod_rules *rules);

/* -EINVAL: an annotation makes no sense; *error says which, and the rest counts all the same. */
int sw_sim_pod_rules_resolve(const struct sw_sim_pod_rules *rules, const struct sw_sim_object *pod,
                             struct sw_sim_pod_settings *ret_settings, struct sw_error *error);
json_t *sw_sim_pod_settings_json(const struct sw_sim_pod_settings *settings);

/* "1m30s", "200ms", "2". */
int sw_sim_pod_duration(const char *text, uint64_t *ret_ms, struct sw_error *error);
bool sw_sim_pod_selected(const struct sw_selector *selector, const json_t *labels);

#endif
