/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kubelet would report for a Pod now, and when that changes next. No I/O and no clock: the
 * times come in.
 *
 *   starting   bound, start not over:      Pending, ContainerCreating
 *   stuck      fail, never ran:            Pending, waiting with that reason
 *   crashing   fail, ran and ended:        Running, waiting with that reason, restarts counted up
 *   running                                Running, ready unless told otherwise, unless flap has
 *                                          its other half, or a container was just restarted
 */
#ifndef TOOLS_SIM_POD_STATUS_H
#define TOOLS_SIM_POD_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_sim_object;
struct sw_sim_pod_settings;

struct sw_sim_container {
    char *name, *image;
    int64_t restarts;
    bool has_run, has_ended;
    int exit_code;
    int64_t started_us, ended_us; /* by the wall clock, for the report */
    uint64_t down_until_ms;
};

/* What is remembered of a bound Pod. */
struct sw_sim_pod_record {
    char ip[16];
    uint64_t bound_ms;
    int64_t bound_us;
    uint64_t backoff_ms;
    uint64_t next_crash_ms; /* 0: none */
    struct sw_sim_container *containers;
    size_t count;
};

struct sw_sim_pod_moment {
    uint64_t now_ms;
    int64_t wall_us;
};

/* From the status that the Pod has already, if any. number: makes its address. */
void sw_sim_pod_record_init(struct sw_sim_pod_record *record, const struct sw_sim_object *pod,
                            unsigned number, struct sw_sim_pod_moment moment);
void sw_sim_pod_record_done(struct sw_sim_pod_record *record);
bool sw_sim_pod_has_run(const struct sw_sim_pod_record *record);
/* Ends the containers once; they run again at once, and are ready after that time. */
void sw_sim_pod_crash(struct sw_sim_pod_record *record, uint64_t down_ms,
                      struct sw_sim_pod_moment moment);
/* Brings the record forward and returns the status to report, new; *ret_wake_ms: when it changes
 * next by itself, or 0. mistake: a sentence that the Pod then shows, or NULL. */
json_t *sw_sim_pod_plan(const struct sw_sim_object *pod, struct sw_sim_pod_record *record,
                        const struct sw_sim_pod_settings *settings, const char *mistake,
                        const char *host_ip, struct sw_sim_pod_moment moment,
                        uint64_t *ret_wake_ms);
/* The status with PodScheduled as said; new. reason may be NULL. */
json_t *sw_sim_pod_scheduled(const struct sw_sim_object *pod, bool is_scheduled,
                             const char *message, int64_t wall_us);

#endif
