/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hears of every change of one Lease, by a watch: a follower that looks at it every few seconds
 * would find a released one late, and would begin to wait for a dead leader late. What has changed
 * is not read here; whoever is told looks. Where a watch is not to be had (it is one more
 * permission) nobody is told, and all goes on as without it.
 */
#ifndef SW_KUBE_LEASE_WATCH_H
#define SW_KUBE_LEASE_WATCH_H

struct sw_client;
struct sw_lease_watch;
struct sw_log;
struct sw_loop;

/* client and log are borrowed; the texts are copied. fn comes from the loop and may free the watch.
 */
struct sw_lease_watch *sw_lease_watch_new(struct sw_loop *loop, struct sw_client *client,
                                          const char *collection_path, const char *name,
                                          const struct sw_log *log, void (*fn)(void *arg),
                                          void *arg);
struct sw_lease_watch *sw_lease_watch_free(struct sw_lease_watch *watch); /* takes NULL */
/* Of changes behind that version. Where it is open already, or was refused some minutes ago at
 * most, nothing happens: to be called whenever the Lease was read. */
void sw_lease_watch_open(struct sw_lease_watch *watch, const char *resource_version);
void sw_lease_watch_close(struct sw_lease_watch *watch);

#endif
