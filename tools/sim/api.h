/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated API server without a socket: a request comes in, an answer that may stream goes
 * out. The HTTP server of slipway-sim and the transport in memory (direct.h) both end here. It
 * knows who asks, what the rules of the kinds are, and whom to ask for admission; it decides
 * nothing about workloads: those are the controllers' (workloads.h, pods.h).
 *
 * Served: discovery (/api, /apis, /version, /openapi/v2 as far as kubectl needs it, /healthz,
 * /readyz, /livez); get, list (limit, continue, labelSelector, fieldSelector on metadata.name,
 * metadata.namespace, involvedObject.* and status.phase, resourceVersion and its match), watch
 * (bookmarks, timeoutSeconds, 410 as a status and within the stream, sendInitialEvents), create
 * (generateName, dryRun), update, the four patches, delete (preconditions, propagationPolicy, grace
 * period), deletecollection, subresources status and scale; tables; Status errors with reason,
 * details and causes as the real server words them.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/
 */
#ifndef TOOLS_SIM_API_H
#define TOOLS_SIM_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_log;
struct sw_loop;
struct sw_sim_api;
struct sw_sim_cache;
struct sw_sim_call;
struct sw_sim_kind;
struct sw_sim_object;
struct sw_sim_store;

/* ---- requests ---- */

struct sw_sim_request {
    const char *method;        /* "GET" */
    const char *target;        /* path and query, encoded */
    const char *accept;        /* NULL: application/json */
    const char *content_type;  /* NULL: application/json */
    const char *user_agent;    /* NULL: none; the default field manager comes from it */
    const char *username;      /* who asks, authenticated already; NULL: system:anonymous */
    const char *const *groups; /* NULL ends it; may be NULL */
    const char *body;
    size_t body_len;
    /* Of the API server that is asked, where that lags behind others (cache.h); NULL: it does not.
     */
    const struct sw_sim_cache *cache;
};

/* on_head, then any number of on_body, then on_end exactly once; from the loop, never from within
 * sw_sim_api_send. Each may be NULL. */
struct sw_sim_answer_events {
    /* retry_after_s: 0 for none; warning: the text of a Warning header, or NULL, for each. */
    void (*on_head)(void *arg, int status, const char *content_type, unsigned retry_after_s,
                    const char *const *warnings, size_t warning_count);
    void (*on_body)(void *arg, const char *bytes, size_t len);
    void (*on_end)(void *arg, bool is_whole);
};

/* The request is copied. ret_call stays valid until on_end has returned. */
void sw_sim_api_send(struct sw_sim_api *api, const struct sw_sim_request *request,
                     const struct sw_sim_answer_events *events, void *arg,
                     struct sw_sim_call **ret_call);
/* The client has gone away: no event comes any more. A write that has begun is carried out. */
void sw_sim_api_cancel(struct sw_sim_api *api, struct sw_sim_call *call);
/* Watches of a kind (NULL: all) end now: whole, or cut in the middle. */
void sw_sim_api_end_watches(struct sw_sim_api *api, const struct sw_sim_kind *kind, bool is_whole);

/* ---- admission ---- */

/* How a webhook is called; by HTTPS, or straight into a process of the simulation. review: the
 * AdmissionReview, valid during the call. done: exactly once, later (never from within call):
 * status 0 where it could not be reached (why says it), else the HTTP status and the body. */
typedef void (*sw_sim_admission_done_fn)(void *arg, int status, const char *body, size_t len,
                                         const char *why);
struct sw_sim_admission_caller {
    void (*call)(void *arg, const json_t *client_config, const char *review, size_t len,
                 uint64_t timeout_ms, sw_sim_admission_done_fn done, void *done_arg);
    void *arg;
};

/* ---- the server ---- */

struct sw_sim_api_options {
    struct sw_sim_admission_caller admission; /* call NULL: webhooks count as unreachable */
    uint64_t bookmark_ms;                     /* 0: 60 000 */
    const char *git_version;                  /* NULL: "v1.20.2" */
    /* metadata.managedFields are left out: server-side apply knows no conflicts then, and every
     * write is cheaper. */
    bool keeps_no_managed_fields;
    uint64_t event_ttl_ms; /* after their last change Events go; 0: never. The real one: an hour */
};

/* store is borrowed. kube-system, default, kube-public and kube-node-lease exist from the start. */
struct sw_sim_api *sw_sim_api_new(struct sw_loop *loop, struct sw_sim_store *store,
                                  const struct sw_sim_api_options *options,
                                  const struct sw_log *log);
struct sw_sim_api *sw_sim_api_free(struct sw_sim_api *api);

/* The garbage collector, and what empties namespaces that are being deleted; on from the start.
 * Off, as if kube-controller-manager were down; on again it looks at what it missed. */
void sw_sim_api_set_collecting(struct sw_sim_api *api, bool is_on);

/* NULL where it is not served. version NULL: the stored one. */
const struct sw_sim_kind *sw_sim_api_kind(const struct sw_sim_api *api, const char *group,
                                          const char *version, const char *plural);

/* ---- writes of the control plane itself ---- */

/*
 * What kube-controller-manager, scheduler and kubelets do, at once and without admission (none of
 * the webhooks of this simulation is registered for what they write). The same rules as from
 * outside otherwise: defaults, validation, generation, subresources, finalizers, and
 * metadata.resourceVersion as a precondition where the object has one.
 * -EEXIST, -ENOENT, -EAGAIN (409 conflict), -EINVAL (what the real server would refuse: a mistake
 * of the controller).
 */
int sw_sim_create(struct sw_sim_api *api, const struct sw_sim_kind *kind, json_t *object_take,
                  const struct sw_sim_object **ret_object);
int sw_sim_update(struct sw_sim_api *api, const struct sw_sim_kind *kind, json_t *object_take);
int sw_sim_update_status(struct sw_sim_api *api, const struct sw_sim_kind *kind,
                         json_t *object_take);
/* grace_s -1: the object's own. propagation: "Background", "Foreground", "Orphan"; may be NULL.
 * -ENOENT also where another object has the name now. */
int sw_sim_delete(struct sw_sim_api *api, const struct sw_sim_object *object, int64_t grace_s,
                  const char *propagation);
/* A Pod that was being deleted is gone: the kubelet says so. */
void sw_sim_finish_delete(struct sw_sim_api *api, const struct sw_sim_object *object);

#endif
