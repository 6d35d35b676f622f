/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the API server at the start, and again until it has answered, whether we may do what will be
 * needed: list and watch the kinds that are watched, send the reads and writes that modules have
 * declared, keep the lease, verify who reads the metrics. What is missing stands in one message;
 * nothing else follows from it, since permissions may be given later.
 */
#ifndef SW_RUNTIME_PERMISSIONS_H
#define SW_RUNTIME_PERMISSIONS_H

struct sw_core;
struct sw_permissions;

struct sw_permissions *sw_permissions_check(struct sw_core *core);
/* Also while it asks. Takes NULL; returns NULL. */
struct sw_permissions *sw_permissions_free(struct sw_permissions *permissions);

#endif
