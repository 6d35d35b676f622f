/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch cache of one API server among several, as far as it is behind: which changes of the
 * store it has not heard of yet. Requests that name it (api.h) are answered as that server would:
 *
 *   get, list without a version, with a limit     from etcd: the newest state, whoever is asked
 *   get, list with "0"                            as old as the cache is
 *   get, list with N                              from the cache, at least N: it waits up to 3 s
 * for it, then 504 "Too large resource version" watch without a version, with "0" begins with what
 * the cache holds watch with N                                  what lies behind N, when the cache
 * hears of it; silence, where N is yet to come
 *
 * Bookmarks say how far it is. Writes go to etcd, from anywhere.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
 *
 * It never goes back. What it has not heard of is kept here, whatever the store forgets: a
 * compaction of etcd does not take from a cache what it has yet to be told.
 */
#ifndef TOOLS_SIM_CACHE_H
#define TOOLS_SIM_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

struct sw_sim_api;
struct sw_sim_cache;

/* Up to date at first. Freed before the API server, and after every call that names it. */
struct sw_sim_cache *sw_sim_cache_new(struct sw_sim_api *api);
struct sw_sim_cache *sw_sim_cache_free(struct sw_sim_cache *cache);

/* So long after it has happened the cache hears of a change; also of those that it waits for. 0:
 * at once, and of those in the next turn of the loop. */
void sw_sim_cache_set_lag(struct sw_sim_cache *cache, uint64_t lag_ms);
/* The newest version that it knows; of all kinds. */
uint64_t sw_sim_cache_version(const struct sw_sim_cache *cache);
/* When it will have reached the version, as things are; 0: it has. */
uint64_t sw_sim_cache_reaches_ms(const struct sw_sim_cache *cache, uint64_t version);
/* What it does not know of, oldest first. Returns what fn returned other than 0. */
int sw_sim_cache_missing(const struct sw_sim_cache *cache, const struct sw_sim_kind *kind,
                         int (*fn)(void *arg, const struct sw_sim_change *change), void *arg);
/* What it knows by that name; borrowed until the loop turns, NULL where there is none. */
const struct sw_sim_object *sw_sim_cache_get(const struct sw_sim_cache *cache,
                                             const struct sw_sim_kind *kind, const char *namespace_,
                                             const char *name);

#endif
