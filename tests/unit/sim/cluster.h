/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated cluster on a virtual loop: API server, controllers, scheduler and kubelets. For the
 * tests of controllers and kubelets, which write as users do but without HTTP.
 */
#ifndef TESTS_UNIT_SIM_CLUSTER_H
#define TESTS_UNIT_SIM_CLUSTER_H

#include "test.h"

#include <jansson.h>

#include "api.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "kind.h"
#include "look.h"
#include "patch.h"
#include "pods.h"
#include "store.h"
#include "workloads.h"

#define UNUSED __attribute__((unused))
#define START_US 1700000000000000 /* 2023-11-14T22:13:20Z */

struct cluster {
    struct sw_loop *loop;
    struct sw_sim_store *store;
    struct sw_sim_api *api;
    struct sw_sim_workloads *workloads;
    struct sw_sim_pods *pods;
};

static inline UNUSED void cluster_init_as(struct cluster *cluster, uint64_t seed,
                                          const struct sw_sim_api_options *options,
                                          const struct sw_sim_workloads_options *workloads)
{
    static const struct sw_log no_log;
    cluster->loop = sw_loop_virtual_new(START_US, seed);
    cluster->store = sw_sim_store_new(1, 1000);
    cluster->api = sw_sim_api_new(cluster->loop, cluster->store, options, &no_log);
    cluster->workloads =
        sw_sim_workloads_new(cluster->loop, cluster->store, cluster->api, workloads);
    cluster->pods = sw_sim_pods_new(cluster->loop, cluster->store, cluster->api, 3);
}

static inline UNUSED void cluster_init(struct cluster *cluster, uint64_t seed)
{
    static const struct sw_sim_api_options options = {.keeps_no_managed_fields = true};
    cluster_init_as(cluster, seed, &options, NULL);
}

static inline UNUSED void cluster_done(struct cluster *cluster)
{
    sw_sim_pods_free(cluster->pods);
    sw_sim_workloads_free(cluster->workloads);
    sw_sim_api_free(cluster->api);
    sw_sim_store_free(cluster->store);
    assert_int_equal(sw_loop_close(cluster->loop), 0);
}

static inline UNUSED const struct sw_sim_kind *kind_of(const struct cluster *cluster,
                                                       const char *plural)
{
    static const char *const groups[] = {"apps", ""};
    const struct sw_sim_kind *kind = NULL;
    for (size_t i = 0; i < SW_ARRAY_SIZE(groups) && !kind; i++)
        kind = sw_sim_api_kind(cluster->api, groups[i], "v1", plural);
    sw_assert(kind);
    return kind;
}

/* In namespace "default" unless the object says otherwise; the object is taken. */
static inline UNUSED void make(const struct cluster *cluster, const char *plural, json_t *object)
{
    const struct sw_sim_kind *kind = kind_of(cluster, plural);
    json_t *meta = json_object_get(object, "metadata");
    if (kind->is_namespaced && !json_object_get(meta, "namespace"))
        json_object_set_new(meta, "namespace", json_string("default"));
    const struct sw_sim_object *made;
    assert_int_equal(sw_sim_create(cluster->api, kind, object, &made), 0);
}

/* Of JSON with ' in place of ". */
static inline UNUSED json_t *json_of(const char *text)
{
    char *copy = sw_strdup(text);
    for (char *at = copy; *at; at++) {
        if (*at == '\'')
            *at = '"';
    }
    json_error_t error;
    json_t *json = json_loads(copy, JSON_DECODE_ANY, &error);
    if (!json)
        fail_msg("%s: %s", error.text, copy);
    sw_free(copy);
    return json;
}

/* NULL where there is none. */
static inline UNUSED const struct sw_sim_object *find(const struct cluster *cluster,
                                                      const char *plural, const char *name)
{
    return sw_sim_store_get(cluster->store, kind_of(cluster, plural), "default", name);
}

static inline UNUSED void merge(const struct cluster *cluster, const char *plural, const char *name,
                                const json_t *patch)
{
    const struct sw_sim_object *object = find(cluster, plural, name);
    assert_non_null(object);
    assert_int_equal(sw_sim_update(cluster->api, object->kind,
                                   sw_sim_merge_patch(sw_sim_object_json(object), patch)),
                     0);
}

static inline UNUSED void patch(const struct cluster *cluster, const char *plural, const char *name,
                                const char *text)
{
    json_t *json = json_of(text);
    merge(cluster, plural, name, json);
    json_decref(json);
}

static inline UNUSED int tell(const struct cluster *cluster, const char *method, const char *path,
                              const char *body)
{
    json_t *json = body ? json_of(body) : NULL, *answer = NULL;
    int status = sw_sim_pods_tell(cluster->pods, method, path, json, &answer);
    json_decref(json);
    json_decref(answer);
    return status;
}

#endif
