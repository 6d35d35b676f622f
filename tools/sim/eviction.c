/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pods/NAME/eviction: a Pod is deleted, unless a PodDisruptionBudget has nothing left to give. As
 * v1.20 has it (pkg/registry/core/pod/storage/eviction.go): a Pod that does not run is deleted
 * without asking, two budgets for one Pod are an error, and what is allowed is counted down here,
 * before the controller (disruption.c) counts anew.
 */
#include <string.h>

#include "base/time.h"
#include "base/util.h"
#include "look.h"
#include "value.h"
#include "write_internal.h"

enum { RETRY_S = 10, DISRUPTED_MAX = 2000 };

static json_t *would_violate(unsigned retry_s, char *why_take)
{
    json_t *refusal =
        sw_sim_plain_status(429, "TooManyRequests",
                            "Cannot evict pod as it would violate the pod's disruption budget.");
    json_t *details = json_object_get(refusal, "details");
    json_object_set_new(
        details, "causes",
        json_pack("[{s:s,s:s}]", "reason", "DisruptionBudget", "message", why_take));
    if (retry_s) {
        json_object_set_new(details, "retryAfterSeconds", json_integer(retry_s));
    }
    sw_free(why_take);
    return refusal;
}

static json_t *check_budget(const struct sw_sim_object *budget)
{
    const json_t *json = sw_sim_object_json(budget);
    int64_t allowed = sw_sim_int_at(json, "status.disruptionsAllowed", 0);
    if (sw_sim_int_at(json, "status.observedGeneration", 0) <
        sw_sim_int_at(json, "metadata.generation", 0)) {
        return would_violate(
            RETRY_S, sw_asprintf("The disruption budget %s is still being processed by the server.",
                                 budget->name));
    }
    if (allowed < 0) {
        return sw_sim_forbidden(budget->kind, budget->name, "pdb disruptions allowed is negative");
    }
    if (json_object_size(sw_sim_at(json, "status.disruptedPods")) > DISRUPTED_MAX) {
        return sw_sim_forbidden(
            budget->kind, budget->name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    return allowed
               ? NULL
               : would_violate(
                     0, sw_asprintf("The disruption budget %s needs %lld healthy pods and has "
                                    "%lld currently",
                                    budget->name,
                                    (long long)sw_sim_int_at(json, "status.desiredHealthy", 0),
                                    (long long)sw_sim_int_at(json, "status.currentHealthy", 0)));
}

/* One less is allowed, and the Pod counts as gone. */
static void take_one(struct sw_sim_api *api, const struct sw_sim_object *budget, const char *pod)
{
    json_t *made = sw_sim_own(sw_sim_object_json(budget));
    json_t *status = sw_sim_own_member(made, "status");
    int64_t allowed = sw_sim_int_at(status, "disruptionsAllowed", 0);
    json_object_set_new(status, "disruptionsAllowed", json_integer(allowed - 1));
    char now[SW_TIME_SIZE];
    sw_time_format(sw_wall_us(api->loop), now);
    json_object_set_new(sw_sim_own_member(status, "disruptedPods"), pod, json_string(now));
    sw_sim_update_status(api, budget->kind, made);
}

/* ---- the budget of a Pod ---- */

struct search {
    json_t *labels;
    const struct sw_sim_object *found; /* a reference */
    size_t count;
};

static int look_at(void *arg, const struct sw_sim_object *budget)
{
    struct search *search = arg;
    if (sw_look_selects(sw_sim_at(sw_sim_object_json(budget), "spec.selector"), search->labels)) {
        search->found = search->count++ ? search->found : sw_sim_object_ref(budget);
    }
    return 0;
}

/* New; NULL: nothing speaks against it, and it has been counted. */
static json_t *ask_budgets(const struct sw_sim_write *write, const struct sw_sim_object *pod)
{
    struct sw_sim_api *api = write->api;
    struct search search = {.labels = sw_sim_object_at(pod, "metadata.labels")};
    sw_sim_store_each(api->store, sw_sim_api_kind(api, "policy", "v1", "poddisruptionbudgets"),
                      pod->namespace_, NULL, look_at, &search);
    json_t *refusal = NULL;
    if (search.count > 1) {
        refusal = sw_sim_status(500, "",
                                "This pod has more than one PodDisruptionBudget, which the "
                                "eviction subresource does not support.");
    } else if (search.found) {
        refusal = check_budget(search.found);
        if (!refusal && !write->is_dry_run) {
            take_one(api, search.found, pod->name);
        }
    }
    sw_sim_object_unref(search.found);
    json_decref(search.labels);
    return refusal;
}

/* ---- the request ---- */

static bool runs(const struct sw_sim_object *pod)
{
    const json_t *json = sw_sim_object_json(pod);
    const char *phase = sw_sim_text_at(json, "status.phase");
    return !sw_sim_at(json, "metadata.deletionTimestamp") && strcmp(phase, "Succeeded") != 0 &&
           strcmp(phase, "Failed") != 0 && strcmp(phase, "Pending") != 0;
}

static json_t *read_body(struct sw_sim_write *write)
{
    const json_t *body = write->body;
    const char *kind = sw_sim_text_at(body, "kind");
    const char *version = sw_sim_text_at(body, "apiVersion");
    if ((*kind && strcmp(kind, "Eviction") != 0) ||
        (*version && strcmp(version, "policy/v1") != 0 && strcmp(version, "policy/v1beta1") != 0)) {
        return sw_sim_statusf(400, "BadRequest", "not an Eviction object: %s, Kind=%s", version,
                              kind);
    }
    const char *name = sw_sim_text_at(body, "metadata.name");
    if (*name && strcmp(name, write->of.name) != 0) {
        return sw_sim_status(400, "BadRequest",
                             "name in URL does not match name in Eviction object");
    }
    const json_t *options = sw_sim_at(body, "deleteOptions");
    write->deletion = (struct sw_sim_deletion){
        .grace_s = sw_sim_int_at(options, "gracePeriodSeconds", -1),
        .propagation = sw_sim_text_at(options, "propagationPolicy"),
        .uid = sw_sim_text(sw_sim_at(options, "preconditions"), "uid", NULL),
        .version = sw_sim_text(sw_sim_at(options, "preconditions"), "resourceVersion", NULL),
    };
    write->is_dry_run = write->is_dry_run || sw_sim_holds(sw_sim_at(options, "dryRun"), "All");
    write->deletion.is_dry_run = write->is_dry_run;
    return NULL;
}

static json_t *evict(struct sw_sim_write *write, const struct sw_sim_object *pod)
{
    json_t *refusal = sw_sim_delete_check(pod, &write->deletion);
    if (!refusal && runs(pod)) {
        refusal = ask_budgets(write, pod);
    }
    if (!refusal) {
        const struct sw_sim_object *left = NULL;
        sw_sim_commit_delete(write->api, pod, &write->deletion, &left);
        sw_sim_object_unref(left);
    }
    return refusal;
}

void sw_sim_write_evict(struct sw_sim_write *write)
{
    json_t *refusal = read_body(write);
    const struct sw_sim_object *pod =
        sw_sim_store_get(write->api->store, write->of.stored, write->of.namespace_, write->of.name);
    if (!refusal && pod) {
        sw_sim_object_ref(pod);
        refusal = evict(write, pod);
        sw_sim_object_unref(pod);
    } else if (!refusal) {
        refusal = sw_sim_not_found(write->of.kind, write->of.name);
    }
    if (refusal) {
        sw_sim_write_refuse(write, refusal);
        return;
    }
    json_t *success = json_pack("{s:s,s:s,s:{},s:s,s:i}", "kind", "Status", "apiVersion", "v1",
                                "metadata", "status", "Success", "code", 201);
    sw_sim_answer_json(write->call, 201, success);
    json_decref(success);
    sw_sim_write_free(write);
}
