/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reflector keeps a store equal to the cluster's: it lists (in pages, or as a stream), watches
 * with bookmarks, and comes back from everything that can happen to either. States and rules stand
 * in reflector.c.
 */
#ifndef SW_KUBE_REFLECTOR_H
#define SW_KUBE_REFLECTOR_H

#include <stdbool.h>
#include <stdint.h>

struct sw_client;
struct sw_decoder;
struct sw_kind;
struct sw_log;
struct sw_loop;
struct sw_metrics;
struct sw_reflector;
struct sw_store;

struct sw_reflector_options {
    const struct sw_kind *kind; /* borrowed for the reflector's life */
    const char *namespace_;     /* NULL: all */
    const char *label_selector; /* NULL: none */
    const char *field_selector; /* NULL: none */
    bool is_optional;           /* 404: tries again every 30 s and counts as listed, empty */
    /* Lists come as the beginning of a watch (sendInitialEvents) where the server can do that, else
     * in pages. */
    bool streams_lists;
    unsigned page_size; /* 0: 500 */
    /* A watch asks the server to end it after this time, and half as much again by chance. */
    unsigned watch_seconds; /* 0: 300 */
    /* Silence on a watch of a server that sends bookmarks is not believed before this. */
    uint64_t silence_ms; /* 0: 75 000 */
};

/* A list has been applied whole. is_consistent: it was sent without a version (so that the server
 * answered from the newest state), after every call of sw_reflector_relist so far. May free the
 * reflector. Of an optional kind that is not served it comes as well, once. */
typedef void (*sw_reflector_listed_fn)(void *arg, bool is_consistent);

/* store, client, decoder are borrowed and must outlive it. Starts at once; nothing is called back
 * from within this call. The store's callback may free the reflector, too. */
struct sw_reflector *sw_reflector_new(struct sw_loop *loop, struct sw_client *client,
                                      struct sw_decoder *decoder, struct sw_store *store,
                                      const struct sw_reflector_options *options,
                                      struct sw_metrics *metrics, const struct sw_log *log,
                                      sw_reflector_listed_fn fn, void *arg);
struct sw_reflector *sw_reflector_free(struct sw_reflector *reflector);
/* Lists anew without a version (a consistent read, sent after this call), then watches from there.
 * fn tells. Several calls before the list is sent are one. */
void sw_reflector_relist(struct sw_reflector *reflector);
/* A list has been applied, ever. */
bool sw_reflector_is_synced(const struct sw_reflector *reflector);
/* ms since the last byte of a stream that was well: how old the picture may be. */
uint64_t sw_reflector_age_ms(const struct sw_reflector *reflector);

#endif
