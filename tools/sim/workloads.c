/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube-controller-manager as a whole: it follows the store through its views, and gives the keys of
 * its queue to the controllers, one after the other. A key that failed comes again, later each
 * time, as client-go's rate limiter has it (5 ms doubled, at most 1000 s).
 */
#include "workloads.h"

#include <stdio.h>
#include <string.h>

#include "api.h"
#include "base/map.h"
#include "base/util.h"
#include "controllers.h"
#include "kind.h"

enum { RETRY_FIRST_MS = 5, RETRY_LAST_MS = 1000 * 1000 };

static const sw_sim_sync_fn syncs[SW_SIM_CONTROLLERS] = {
    [SW_SIM_DEPLOYMENTS] = sw_sim_sync_deployment,
    [SW_SIM_REPLICA_SETS] = sw_sim_sync_replica_set,
    [SW_SIM_STATEFUL_SETS] = sw_sim_sync_stateful_set,
    [SW_SIM_DAEMON_SETS] = sw_sim_sync_daemon_set,
};

static const struct {
    const char *group, *plural;
} kinds[SW_SIM_VIEWS] = {
    [SW_SIM_DEPLOYMENTS] = {"apps", "deployments"},
    [SW_SIM_REPLICA_SETS] = {"apps", "replicasets"},
    [SW_SIM_STATEFUL_SETS] = {"apps", "statefulsets"},
    [SW_SIM_DAEMON_SETS] = {"apps", "daemonsets"},
    [SW_SIM_REVISIONS] = {"apps", "controllerrevisions"},
    [SW_SIM_PODS] = {"", "pods"},
    [SW_SIM_NODES] = {"", "nodes"},
};

/* ---- the queue ---- */

static void on_later(struct sw_timer *timer)
{
    struct sw_sim_job *job = container_of(timer, struct sw_sim_job, later);
    job->workloads->sleeping--;
    sw_link_add_last(&job->workloads->queue, &job->link);
    sw_defer_start(&job->workloads->run);
}

static struct sw_sim_job *job_of(struct sw_sim_workloads *workloads, enum sw_sim_which which,
                                 const char *namespace_, const char *name)
{
    char key[SW_SIM_KEY_SIZE];
    sw_sim_key(key, namespace_, name);
    struct sw_sim_job *job = sw_map_get(workloads->jobs[which], key);
    if (!job) {
        job = SW_NEW(struct sw_sim_job);
        job->workloads = workloads;
        job->which = which;
        job->namespace_ = sw_strdup(namespace_);
        job->name = sw_strdup(name);
        sw_link_init(&job->link);
        sw_timer_init(&job->later, workloads->loop, on_later);
        sw_map_set(workloads->jobs[which], key, job);
    }
    return job;
}

void sw_sim_wake_no_more(struct sw_sim_job *job)
{
    if (sw_timer_is_active(&job->later)) {
        sw_timer_stop(&job->later);
        job->workloads->sleeping--;
    }
}

static void stop_job(struct sw_sim_job *job)
{
    sw_link_remove(&job->link);
    sw_sim_wake_no_more(job);
}

static void free_job(struct sw_sim_job *job)
{
    stop_job(job);
    sw_free(job->namespace_);
    sw_free(job->name);
    sw_free(job);
}

static void forget_job(struct sw_sim_job *job)
{
    char key[SW_SIM_KEY_SIZE];
    sw_sim_key(key, job->namespace_, job->name);
    sw_map_remove(job->workloads->jobs[job->which], key);
    free_job(job);
}

void sw_sim_wake(struct sw_sim_workloads *workloads, enum sw_sim_which which,
                 const char *namespace_, const char *name)
{
    struct sw_sim_job *job = job_of(workloads, which, namespace_, name);
    if (!sw_link_is_used(&job->link))
        sw_link_add_last(&workloads->queue, &job->link);
    if (workloads->is_running)
        sw_defer_start(&workloads->run);
}

static void start_later(struct sw_sim_job *job, uint64_t ms)
{
    uint64_t due_ms = sw_now_ms(job->workloads->loop) + ms;
    if (sw_timer_is_active(&job->later)) {
        if (job->later.due_ms <= due_ms)
            return;
    } else {
        job->workloads->sleeping++;
    }
    sw_timer_start_at(&job->later, due_ms);
}

void sw_sim_wake_after(struct sw_sim_workloads *workloads, enum sw_sim_which which,
                       const char *namespace_, const char *name, uint64_t ms)
{
    start_later(job_of(workloads, which, namespace_, name), ms);
}

static void look_at(struct sw_sim_workloads *workloads, struct sw_sim_job *job)
{
    const struct sw_sim_item *item =
        sw_sim_view_get(workloads->views[job->which], job->namespace_, job->name);
    if (!item) {
        forget_job(job);
        return;
    }
    const struct sw_sim_object *object = sw_sim_object_ref(item->object);
    if (syncs[job->which](workloads, job, object) < 0) {
        uint64_t wait_ms = (uint64_t)RETRY_FIRST_MS << SW_MIN(job->failures, 18u);
        job->failures++;
        start_later(job, SW_MIN(wait_ms, (uint64_t)RETRY_LAST_MS));
    } else {
        job->failures = 0;
    }
    sw_sim_object_unref(object);
}

static void on_run(struct sw_defer *defer)
{
    struct sw_sim_workloads *workloads = container_of(defer, struct sw_sim_workloads, run);
    struct sw_link *first = sw_link_first(&workloads->queue);
    if (!first || !workloads->is_running)
        return;
    sw_link_remove(first);
    look_at(workloads, container_of(first, struct sw_sim_job, link));
    if (sw_link_is_used(&workloads->queue))
        sw_defer_start(&workloads->run);
}

/* ---- the store ---- */

static void on_store_change(struct sw_sim_store_watcher *watcher,
                            const struct sw_sim_change *change)
{
    struct sw_sim_workloads *workloads = container_of(watcher, struct sw_sim_workloads, watcher);
    if (!workloads->is_running)
        return;
    sw_sim_disruption_change(workloads->disruption, change);
    for (size_t i = 0; i < SW_SIM_VIEWS; i++) {
        if (sw_sim_view_kind(workloads->views[i]) == change->object->kind)
            sw_sim_view_tell(workloads->views[i], change);
    }
}

const struct sw_sim_kind *sw_sim_kind_of(const struct sw_sim_workloads *workloads,
                                         enum sw_sim_which which)
{
    return sw_sim_view_kind(workloads->views[which]);
}

/* ---- life ---- */

struct sw_sim_workloads *sw_sim_workloads_new(struct sw_loop *loop, struct sw_sim_store *store,
                                              struct sw_sim_api *api,
                                              const struct sw_sim_workloads_options *options)
{
    struct sw_sim_workloads *workloads = SW_NEW(struct sw_sim_workloads);
    uint64_t min_ms = options ? options->lag_min_ms : 0, max_ms = options ? options->lag_max_ms : 0;
    if (!max_ms) {
        min_ms = 1;
        max_ms = 3;
    }
    workloads->loop = loop;
    workloads->store = store;
    workloads->api = api;
    workloads->disruption = sw_sim_disruption_new(loop, store, api);
    if (options && options->records_events)
        workloads->recorder = sw_sim_recorder_new(loop, store, api);
    sw_link_init(&workloads->queue);
    sw_defer_init(&workloads->run, loop, on_run);
    for (size_t i = 0; i < SW_SIM_VIEWS; i++) {
        const struct sw_sim_kind *kind =
            sw_sim_api_kind(api, kinds[i].group, "v1", kinds[i].plural);
        sw_assert(kind);
        workloads->views[i] =
            sw_sim_view_new(loop, kind, i == SW_SIM_PODS, sw_sim_on_change, workloads);
        sw_sim_view_set_lag(workloads->views[i], min_ms, max_ms);
    }
    for (size_t i = 0; i < SW_SIM_CONTROLLERS; i++)
        workloads->jobs[i] = sw_map_new();
    workloads->watcher.on_change = on_store_change;
    sw_sim_store_watch(store, &workloads->watcher);
    sw_sim_workloads_set_running(workloads, true);
    return workloads;
}

static void forget_all(struct sw_sim_workloads *workloads)
{
    sw_defer_stop(&workloads->run);
    sw_sim_disruption_rest(workloads->disruption);
    for (size_t i = 0; i < SW_SIM_VIEWS; i++)
        sw_sim_view_clear(workloads->views[i]);
    for (size_t i = 0; i < SW_SIM_CONTROLLERS; i++) {
        struct sw_map_iter it = {0};
        while (sw_map_next(workloads->jobs[i], &it)) {
            struct sw_sim_job *job = it.value;
            sw_map_remove(workloads->jobs[i], it.key);
            free_job(job);
        }
    }
}

void sw_sim_workloads_set_running(struct sw_sim_workloads *workloads, bool is_running)
{
    if (workloads->is_running == is_running)
        return;
    workloads->is_running = is_running;
    if (!is_running) {
        forget_all(workloads);
        return;
    }
    for (size_t i = 0; i < SW_SIM_VIEWS; i++)
        sw_sim_view_fill(workloads->views[i], workloads->store);
    sw_sim_disruption_look(workloads->disruption);
}

bool sw_sim_workloads_is_quiet(const struct sw_sim_workloads *workloads)
{
    for (size_t i = 0; i < SW_SIM_VIEWS; i++) {
        if (!sw_sim_view_is_quiet(workloads->views[i]))
            return false;
    }
    return !sw_link_is_used(&workloads->queue) && !workloads->sleeping;
}

struct sw_sim_workloads *sw_sim_workloads_free(struct sw_sim_workloads *workloads)
{
    if (!workloads)
        return NULL;
    sw_sim_store_unwatch(workloads->store, &workloads->watcher);
    forget_all(workloads);
    for (size_t i = 0; i < SW_SIM_VIEWS; i++)
        sw_sim_view_free(workloads->views[i]);
    for (size_t i = 0; i < SW_SIM_CONTROLLERS; i++)
        sw_map_free(workloads->jobs[i]);
    sw_sim_disruption_free(workloads->disruption);
    sw_sim_recorder_free(workloads->recorder);
    return sw_free(workloads);
}
