/* SPDX-License-Identifier: Apache-2.0 */
/* What a kubelet would report for a Pod now, and when that changes next. */
#include "pod_status.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "look.h"
#include "pod_rules.h"
#include "store.h"

/* How long a crashing container waits before the next try: doubled each time, as a kubelet does,
 * but from 1 s to 30 s instead of from 10 s to 5 minutes, as tools/kubelets does it. */
enum { BACKOFF_FIRST_MS = 1000, BACKOFF_LAST_MS = 30000 };

/* ---- the record ---- */

static struct sw_sim_container read_container(const struct sw_sim_object *pod, const json_t *spec)
{
    const char *name = sw_look_string(spec, "name");
    const json_t *known = sw_look_element(
        sw_look_at(sw_sim_object_json(pod), "status", "containerStatuses", NULL), "name", name);
    const char *image = sw_look_string(known ? known : spec, "image");
    int64_t started_us = sw_look_time_us(sw_look_at(known, "state", "running", NULL), "startedAt");
    return (struct sw_sim_container){
        .name = sw_strdup(name),
        .image = sw_strdup(image),
        .restarts = sw_look_int(known, "restartCount", 0),
        .has_run = started_us != 0,
        .started_us = started_us,
    };
}

void sw_sim_pod_record_init(struct sw_sim_pod_record *record, const struct sw_sim_object *pod,
                            unsigned number, struct sw_sim_pod_moment moment)
{
    const json_t *status = json_object_get(sw_sim_object_json(pod), "status");
    int64_t since_us = sw_look_time_us(status, "startTime");
    *record = (struct sw_sim_pod_record){
        .bound_us = since_us ? since_us : moment.wall_us,
        .bound_ms = moment.now_ms,
        .backoff_ms = BACKOFF_FIRST_MS,
    };
    if (since_us && since_us < moment.wall_us) {
        uint64_t passed_ms = (uint64_t)(moment.wall_us - since_us) / 1000;
        record->bound_ms = moment.now_ms - SW_MIN(passed_ms, moment.now_ms);
    }
    number %= 65000;
    snprintf(record->ip, sizeof(record->ip), "10.1.%u.%u", number / 250 % 256, number % 250 + 1);
    const char *ip = sw_look_string(status, "podIP");
    if (*ip)
        snprintf(record->ip, sizeof(record->ip), "%s", ip);
    const json_t *containers = sw_look_at(sw_sim_object_json(pod), "spec", "containers", NULL);
    record->containers = sw_calloc(json_array_size(containers) + 1, sizeof(*record->containers));
    size_t at;
    json_t *spec;
    json_array_foreach(containers, at, spec) record->containers[record->count++] =
        read_container(pod, spec);
}

void sw_sim_pod_record_done(struct sw_sim_pod_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        sw_free(record->containers[i].name);
        sw_free(record->containers[i].image);
    }
    record->containers = sw_free(record->containers);
    record->count = 0;
}

bool sw_sim_pod_has_run(const struct sw_sim_pod_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        if (record->containers[i].has_run)
            return true;
    }
    return false;
}

static void restart(struct sw_sim_container *container, uint64_t down_ms, int exit_code,
                    struct sw_sim_pod_moment moment)
{
    container->restarts++;
    container->has_run = container->has_ended = true;
    container->exit_code = exit_code;
    container->started_us = container->ended_us = moment.wall_us;
    container->down_until_ms = moment.now_ms + down_ms;
}

void sw_sim_pod_crash(struct sw_sim_pod_record *record, uint64_t down_ms,
                      struct sw_sim_pod_moment moment)
{
    for (size_t i = 0; i < record->count; i++)
        restart(&record->containers[i], down_ms, 1, moment);
}

/* ---- bringing it forward ---- */

static void crash_on(struct sw_sim_pod_record *record, struct sw_sim_pod_moment moment)
{
    if (!record->next_crash_ms)
        record->next_crash_ms = moment.now_ms;
    while (record->next_crash_ms <= moment.now_ms) {
        for (size_t i = 0; i < record->count; i++) {
            struct sw_sim_container *container = &record->containers[i];
            container->restarts += container->has_run;
            container->has_run = container->has_ended = true;
            container->started_us = container->ended_us = moment.wall_us;
            container->exit_code = 1;
        }
        record->next_crash_ms += record->backoff_ms;
        record->backoff_ms = SW_MIN(2 * record->backoff_ms, (uint64_t)BACKOFF_LAST_MS);
    }
}

/* Starts what has not run, and restarts what got another image in place. */
static void run_containers(const struct sw_sim_object *pod, struct sw_sim_pod_record *record,
                           uint64_t start_ms, struct sw_sim_pod_moment moment)
{
    const json_t *specs = sw_look_at(sw_sim_object_json(pod), "spec", "containers", NULL);
    for (size_t i = 0; i < record->count; i++) {
        struct sw_sim_container *container = &record->containers[i];
        const char *image = sw_look_string(json_array_get(specs, i), "image");
        bool is_other = strcmp(image, container->image) != 0;
        if (is_other) {
            sw_free(container->image);
            container->image = sw_strdup(image);
        }
        if (!container->has_run) {
            container->has_run = true;
            container->started_us = moment.wall_us;
        } else if (is_other) {
            restart(container, start_ms, 0, moment);
        }
    }
}

/* ---- the report ---- */

static json_t *condition(const json_t *old, const char *type, bool value, const char *reason,
                         int64_t wall_us)
{
    const json_t *before = sw_look_element(old, "type", type);
    const char *status = value ? "True" : "False";
    const json_t *since = json_object_get(before, "lastTransitionTime");
    bool is_same = since && strcmp(sw_look_string(before, "status"), status) == 0;
    json_t *one =
        json_pack("{s:s, s:s, s:n, s:o}", "type", type, "status", status, "lastProbeTime",
                  "lastTransitionTime", is_same ? sw_look_share(since) : sw_look_time(wall_us));
    if (reason)
        json_object_set_new(one, "reason", json_string(reason));
    return one;
}

/* All readiness gates but those that somebody has opened. */
static bool gates_are_open(const struct sw_sim_object *pod, const json_t *old)
{
    size_t at;
    json_t *gate;
    json_array_foreach(sw_look_at(sw_sim_object_json(pod), "spec", "readinessGates", NULL), at,
                       gate)
    {
        const json_t *one = sw_look_element(old, "type", sw_look_string(gate, "conditionType"));
        if (strcmp(sw_look_string(one, "status"), "True") != 0)
            return false;
    }
    return true;
}

static bool is_ours(const char *type)
{
    static const char *const ours[] = {"Initialized", "Ready", "ContainersReady", "PodScheduled"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(ours); i++) {
        if (strcmp(type, ours[i]) == 0)
            return true;
    }
    return false;
}

static json_t *conditions(const struct sw_sim_object *pod, bool is_ready, int64_t wall_us)
{
    const json_t *old = sw_look_at(sw_sim_object_json(pod), "status", "conditions", NULL);
    bool is_open = gates_are_open(pod, old);
    const char *why = is_ready ? NULL : "ContainersNotReady";
    json_t *all = json_array();
    json_array_append_new(all, condition(old, "Initialized", true, NULL, wall_us));
    json_array_append_new(all, condition(old, "Ready", is_ready && is_open,
                                         why || is_open ? why : "ReadinessGatesNotReady", wall_us));
    json_array_append_new(all, condition(old, "ContainersReady", is_ready, why, wall_us));
    json_array_append_new(all, condition(old, "PodScheduled", true, NULL, wall_us));
    size_t at;
    json_t *one;
    json_array_foreach(old, at, one)
    {
        if (!is_ours(sw_look_string(one, "type")))
            json_array_append(all, one);
    }
    return all;
}

/* Init containers have all done their work by the time that anybody looks. */
static void report_init(const struct sw_sim_object *pod, const struct sw_sim_pod_record *record,
                        json_t *status)
{
    const json_t *specs = sw_look_at(sw_sim_object_json(pod), "spec", "initContainers", NULL);
    if (!json_array_size(specs))
        return;
    json_t *all = json_array();
    size_t at;
    json_t *spec;
    json_array_foreach(specs, at, spec)
    {
        const char *image = sw_look_string(spec, "image");
        SW_AUTO(char, sw_free) id = sw_asprintf("played://%s", image);
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:s, s:b, s:i, s:{}, s:{s:{s:i, s:s, s:o, s:o}}}", "name",
                           sw_look_string(spec, "name"), "image", image, "imageID", id, "ready", 1,
                           "restartCount", 0, "lastState", "state", "terminated", "exitCode", 0,
                           "reason", "Completed", "startedAt", sw_look_time(record->bound_us),
                           "finishedAt", sw_look_time(record->bound_us)));
    }
    json_object_set_new(status, "initContainerStatuses", all);
}

static json_t *report(const struct sw_sim_object *pod, const struct sw_sim_pod_record *record,
                      const char *phase, json_t *containers_take, bool is_ready,
                      const char *host_ip, int64_t wall_us)
{
    const json_t *old = json_object_get(sw_sim_object_json(pod), "status");
    json_t *status = old ? sw_look_copy(old) : json_object();
    json_object_set_new(status, "phase", json_string(phase));
    json_object_set_new(status, "conditions", conditions(pod, is_ready, wall_us));
    json_object_set_new(status, "hostIP", json_string(host_ip));
    json_object_set_new(status, "startTime", sw_look_time(record->bound_us));
    json_object_set_new(status, "containerStatuses", containers_take);
    if (strcmp(phase, "Pending") != 0) {
        json_object_set_new(status, "podIP", json_string(record->ip));
        json_object_set_new(status, "podIPs", json_pack("[{s:s}]", "ip", record->ip));
    }
    report_init(pod, record, status);
    return status;
}

static json_t *waiting_state(const char *reason, const char *message)
{
    json_t *state = json_pack("{s:{s:s}}", "waiting", "reason", reason);
    if (message)
        json_object_set_new(json_object_get(state, "waiting"), "message", json_string(message));
    return state;
}

static json_t *report_pending(const struct sw_sim_object *pod,
                              const struct sw_sim_pod_record *record, const char *reason,
                              const char *message, const char *host_ip, int64_t wall_us)
{
    json_t *all = json_array();
    for (size_t i = 0; i < record->count; i++) {
        const struct sw_sim_container *one = &record->containers[i];
        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:s, s:b, s:b, s:I, s:o, s:{}}", "name",
                                        one->name, "image", one->image, "imageID", "", "ready", 0,
                                        "started", 0, "restartCount", (json_int_t)one->restarts,
                                        "state", waiting_state(reason, message), "lastState"));
    }
    return report(pod, record, sw_sim_pod_has_run(record) ? "Running" : "Pending", all, false,
                  host_ip, wall_us);
}

static json_t *last_state(const struct sw_sim_container *one)
{
    if (!one->has_ended)
        return json_object();
    return json_pack("{s:{s:i, s:s, s:o, s:o}}", "terminated", "exitCode", one->exit_code, "reason",
                     one->exit_code ? "Error" : "Completed", "startedAt",
                     sw_look_time(one->ended_us), "finishedAt", sw_look_time(one->ended_us));
}

static json_t *report_running(const struct sw_sim_object *pod,
                              const struct sw_sim_pod_record *record, bool is_ready,
                              const char *waits_for, const char *host_ip,
                              struct sw_sim_pod_moment moment)
{
    json_t *all = json_array();
    bool all_ready = true;
    for (size_t i = 0; i < record->count; i++) {
        const struct sw_sim_container *one = &record->containers[i];
        bool one_ready = is_ready && one->down_until_ms <= moment.now_ms;
        all_ready = all_ready && one_ready;
        json_t *state = *waits_for ? waiting_state(waits_for, "told so by a test")
                                   : json_pack("{s:{s:o}}", "running", "startedAt",
                                               sw_look_time(one->started_us));
        SW_AUTO(char, sw_free) image_id = sw_asprintf("played://%s", one->image);
        SW_AUTO(char, sw_free)
        id = sw_asprintf("played://%s/%s/%lld", pod->uid, one->name, (long long)one->restarts);
        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:I, s:o, s:o}", "name",
                                        one->name, "image", one->image, "imageID", image_id,
                                        "containerID", id, "ready", one_ready, "started",
                                        !*waits_for, "restartCount", (json_int_t)one->restarts,
                                        "state", state, "lastState", last_state(one)));
    }
    return report(pod, record, "Running", all, all_ready, host_ip, moment.wall_us);
}

static void soonest(uint64_t *wake_ms, uint64_t at_ms)
{
    if (!*wake_ms || at_ms < *wake_ms)
        *wake_ms = at_ms;
}

json_t *sw_sim_pod_plan(const struct sw_sim_object *pod, struct sw_sim_pod_record *record,
                        const struct sw_sim_pod_settings *settings, const char *mistake,
                        const char *host_ip, struct sw_sim_pod_moment moment, uint64_t *ret_wake_ms)
{
    *ret_wake_ms = 0;
    if (mistake)
        return report_pending(pod, record, "BadKubeletSettings", mistake, host_ip, moment.wall_us);
    if (settings->never_runs)
        return report_pending(pod, record, settings->fail, "told so by a test", host_ip,
                              moment.wall_us);
    uint64_t start_ms = record->bound_ms + settings->start_ms;
    if (moment.now_ms < start_ms && !sw_sim_pod_has_run(record)) {
        *ret_wake_ms = start_ms;
        return report_pending(pod, record, "ContainerCreating", NULL, host_ip, moment.wall_us);
    }
    if (*settings->fail) {
        crash_on(record, moment);
        *ret_wake_ms = record->next_crash_ms;
        return report_running(pod, record, false, settings->fail, host_ip, moment);
    }
    record->next_crash_ms = 0;
    record->backoff_ms = BACKOFF_FIRST_MS;
    run_containers(pod, record, settings->start_ms, moment);
    for (size_t i = 0; i < record->count; i++) {
        if (record->containers[i].down_until_ms > moment.now_ms)
            soonest(ret_wake_ms, record->containers[i].down_until_ms);
    }
    bool is_ready = settings->is_ready;
    if (is_ready && settings->flap_ms) {
        uint64_t passed_ms = moment.now_ms > start_ms ? moment.now_ms - start_ms : 0;
        uint64_t turn = passed_ms / settings->flap_ms;
        is_ready = turn % 2 == 0;
        soonest(ret_wake_ms, start_ms + (turn + 1) * settings->flap_ms);
    }
    return report_running(pod, record, is_ready, "", host_ip, moment);
}

json_t *sw_sim_pod_scheduled(const struct sw_sim_object *pod, bool is_scheduled,
                             const char *message, int64_t wall_us)
{
    const json_t *old = json_object_get(sw_sim_object_json(pod), "status");
    json_t *status = old ? sw_look_copy(old) : json_object();
    const json_t *before = json_object_get(status, "conditions");
    json_t *one = condition(before, "PodScheduled", is_scheduled,
                            is_scheduled ? NULL : "Unschedulable", wall_us);
    if (message)
        json_object_set_new(one, "message", json_string(message));
    json_t *all = json_array();
    size_t at;
    json_t *other;
    json_array_foreach(before, at, other)
    {
        if (strcmp(sw_look_string(other, "type"), "PodScheduled") != 0)
            json_array_append(all, other);
    }
    json_array_append_new(all, one);
    json_object_set_new(status, "conditions", all);
    return status;
}
