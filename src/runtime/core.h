/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core: what stands between the modules and the API server. It owns the client, one store and
 * one stream for each kind, the modules that run, and what they registered; whether this process
 * leads is decided here too. It knows no policy, no command line and no listening socket: those are
 * process.h, webhook.h and health.h. So that the whole of it runs in a test, on a virtual loop and
 * a transport in memory.
 *
 *   sw_core_new, sw_core_add for each module, sw_core_open   everything starts
 *   sw_core_quiesce                                          no new work; writes under way finish
 *   sw_core_free                                             modules are stopped, all is freed
 *
 * The members are private to src/runtime.
 */
#ifndef SW_RUNTIME_CORE_H
#define SW_RUNTIME_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "runtime/fetch.h"
#include "runtime/kinds.h"
#include "runtime/leading.h"
#include "runtime/read.h"
#include "runtime/registry.h"
#include "runtime/write.h"

struct sw_client;
struct sw_error;
struct sw_fetcher;
struct sw_instance;
struct sw_loop;
struct sw_metrics;
struct sw_module;
struct sw_permissions;
struct sw_transport;

struct sw_core_options {
    const char *path_prefix;              /* of the API server's URL; NULL: none */
    const char *host;                     /* of the API server, for metrics; NULL: "" */
    unsigned requests_per_second, burst;  /* to the API server; 0: as sw_client_options */
    const char *namespace_;               /* what is watched; NULL: all */
    const char *username;                 /* NULL: sw_core_set_username comes */
    const struct sw_lease_options *lease; /* NULL: leads without an election */
    bool streams_lists; /* lists come as the beginning of a watch, where the server can do that */
    bool checks_permissions;    /* asks the API server whether we may do what the modules will do */
    bool verifies_callers;      /* and the questions of metrics_access.h besides */
    struct sw_fetcher *fetcher; /* what carries requests to other servers (fetch.h); borrowed, and
                                   outlives the core; NULL: HTTP */
};

/* Stopping in order; idle while done is NULL. */
struct sw_quiesce {
    void (*done)(void *arg);
    void *arg;
    enum { SW_QUIESCE_WRITES, SW_QUIESCE_SINKS, SW_QUIESCE_LEASE, SW_QUIESCE_REST } stage;
    struct sw_timer timeout;
    struct sw_defer look;
};

struct sw_core {
    struct sw_loop *loop;
    struct sw_metrics *metrics;
    struct sw_log log;
    struct sw_client *client;
    char *namespace_;
    char *username; /* NULL while unknown */
    bool checks_permissions, verifies_callers;
    bool streams_lists;
    bool is_open;
    struct sw_instance **instances; /* in the order of their start */
    size_t instance_count;
    struct sw_kinds kinds;
    struct sw_leading leading;
    struct sw_writes writes;
    struct sw_reads reads;
    struct sw_fetches fetches;
    struct sw_registry registry;
    struct sw_permissions *permissions; /* NULL: not being asked for */
    uint64_t retry_pace_ms;             /* of all queues together: queue.c */
    int64_t started_us;                 /* wall clock */
    uint64_t run_number;                /* of calls for a key, of all queues */
    struct sw_quiesce quiesce;
};

/* transport and metrics are borrowed and must outlive it. */
struct sw_core *sw_core_new(struct sw_loop *loop, struct sw_transport *transport,
                            const struct sw_core_options *options, struct sw_metrics *metrics,
                            const struct sw_log *log);
/* Starts a module; config (of the module's schema; may be NULL) is borrowed until sw_core_free, or
 * until sw_core_reconfigure has put another one in its place.
 * Before sw_core_open. On failure the error says which module and why, and the others are
 * untouched. */
int sw_core_add(struct sw_core *core, const struct sw_module *module, const void *config,
                struct sw_error *error);
/* configs[i] is for the i-th of the first count modules that were added (parts of the core, which
 * come behind them, have none that changes), and the one that it has already where nothing
 * changes; the others must have a reconfigure. All or nothing: if one refuses, those before it get
 * back what they had, and the error says who and why. Whatever comes of it, sw_core_config says
 * which one each module has from now on; all others may be freed. Not from a callback of a module.
 */
int sw_core_reconfigure(struct sw_core *core, const void *const *configs, size_t count,
                        struct sw_error *error);
const void *sw_core_config(const struct sw_core *core, size_t index);
/* How much is asked of the API server, from now on. */
void sw_core_set_rate(struct sw_core *core, unsigned requests_per_second, unsigned burst);
/* Opens the streams of all kinds that were subscribed to, and asks for the lease. */
void sw_core_open(struct sw_core *core);
/* Under which name the API server knows us; "" if that cannot be found out. Reviews are refused and
 * nobody leads before it is set for the first time. */
void sw_core_set_username(struct sw_core *core, const char *username);

/* Reviews may be answered: every kind is listed and our name is known. */
bool sw_core_is_ready(const struct sw_core *core);
/* Takes no new work and lets writes under way finish (at most timeout_ms), then what was recorded
 * (a quarter of a second), gives the lease back, and lets the rest of what was recorded finish (at
 * most 2 s); then done comes, once. Kinds stay current and reviews are answered all the while. */
void sw_core_quiesce(struct sw_core *core, uint64_t timeout_ms, void (*done)(void *arg), void *arg);
/* For the parts of the core: something has finished that sw_core_quiesce may be waiting for. */
void sw_core_look_at_quiesce(struct sw_core *core);
/* At any time, but not from a callback of a module. Takes NULL; returns NULL. */
struct sw_core *sw_core_free(struct sw_core *core);

#endif
