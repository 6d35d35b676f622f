/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of slipway-sim, told on the command line or through its admin endpoint: which requests,
 * and what happens to them. A rule is a JSON object:
 *
 *   "method", "path", "userAgent"  the request's (path and userAgent: a part of it); absent: any
 *   "watch"       true: only watches; false: only others
 *   "percent"     of the requests that match (100)
 *   "times"       after so many hits the rule is over (never)
 *   and one of
 *   "status"      answer this at once, without carrying the request out; "retryAfter" in seconds
 *   "delay"       "200ms": carry it out so much later
 *   "cutAfter"    carry it out, and cut the connection after so many bytes of the answer; 0: the
 *                 answer is lost whole
 *   "silent"      true: carry it out, and never answer
 */
#ifndef TOOLS_SIM_FAULT_RULES_H
#define TOOLS_SIM_FAULT_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_error;
struct sw_loop;
struct sw_sim_fault_rules;

enum sw_sim_fault_action {
    SW_SIM_FAULT_NONE,
    SW_SIM_FAULT_STATUS,
    SW_SIM_FAULT_DELAY,
    SW_SIM_FAULT_CUT,
    SW_SIM_FAULT_SILENCE,
};

struct sw_sim_fault {
    enum sw_sim_fault_action action;
    int status;
    unsigned retry_after_s;
    uint64_t delay_ms;
    size_t cut_after;
};

struct sw_sim_fault_rules *sw_sim_fault_rules_new(struct sw_loop *loop);
struct sw_sim_fault_rules *sw_sim_fault_rules_free(struct sw_sim_fault_rules *rules);
/* Replaces the rule of that name. -EINVAL: *error says which member is wrong and what would do. */
int sw_sim_fault_rules_set(struct sw_sim_fault_rules *rules, const char *name, const json_t *rule,
                           struct sw_error *error);
/* name NULL: all. False where there is none. */
bool sw_sim_fault_rules_remove(struct sw_sim_fault_rules *rules, const char *name);
/* {"NAME": {the rule as it was told, "hits": 3}}; new. */
json_t *sw_sim_fault_rules_show(const struct sw_sim_fault_rules *rules);
/* Draws: the first rule that matches and hits. Rules are looked at in the order of their making. */
struct sw_sim_fault sw_sim_fault_rules_draw(struct sw_sim_fault_rules *rules, const char *method,
                                            const char *path, const char *query,
                                            const char *user_agent);

#endif
