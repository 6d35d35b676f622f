/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader election by a Lease (coordination.k8s.io/v1) with client-go's rules and timings: 15 s
 * lease, 10 s renewal deadline, 2 s between tries. The holder counts from when it *sent* its last
 * successful renewal; a follower takes over when the record has not changed for
 * leaseDurationSeconds of the record on its own monotonic clock, which counts the time of a
 * suspended machine too. No wall clock is compared. A follower hears of every change by a watch
 * (lease_watch.h), so that one that is released is taken at once.
 */
#ifndef SW_KUBE_LEASE_H
#define SW_KUBE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

struct sw_client;
struct sw_lease;
struct sw_log;
struct sw_loop;
struct sw_metrics;

struct sw_lease_options {
    const char *namespace_;
    const char *name;
    const char *identity;       /* pod name + "_" + random uuid */
    uint64_t duration_ms;       /* 0: 15 000; whole seconds, more than renew_deadline_ms */
    uint64_t renew_deadline_ms; /* 0: 10 000; more than 1.2 * retry_ms */
    uint64_t retry_ms;          /* 0: 2 000 */
};

/* is_leading true: won. False: lost, at the moment the deadline passes, or when somebody else holds
 * it. The callee fences the client (sw_client_fence) before it does anything else; until the timer
 * has fired, sw_client_set_may_write with sw_lease_is_held keeps late writes back. May free the
 * lease. */
typedef void (*sw_lease_fn)(void *arg, bool is_leading);

/* client is borrowed. Starts at once. */
struct sw_lease *sw_lease_new(struct sw_loop *loop, struct sw_client *client,
                              const struct sw_lease_options *options, struct sw_metrics *metrics,
                              const struct sw_log *log, sw_lease_fn fn, void *arg);
struct sw_lease *sw_lease_free(struct sw_lease *lease);
bool sw_lease_is_held(
    const struct sw_lease *lease); /* asks the clock, not a timer: also right after a suspend */
/* How often the lease has changed hands, as last seen: the term, to be recorded in what the leader
 * writes. */
int64_t sw_lease_transitions(const struct sw_lease *lease);
/* Gives it up (no holder, duration 1 s) and tries no more; done comes once, after this call has
 * returned, also when it was not held or the server does not answer within 5 s; fn comes no more.
 * Only after every write has been answered. Once. */
void sw_lease_release(struct sw_lease *lease, void (*done)(void *arg), void *arg);

#endif
