/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reads of slipway/read.h that are under way: read.c has those of one object, read_list.c those
 * of lists. Each is known from the call until its callback. Nobody waits for them, and they touch
 * no store.
 */
#ifndef SW_RUNTIME_READ_H
#define SW_RUNTIME_READ_H

#include <slipway/read.h>

#include "base/list.h"

struct sw_core;

struct sw_reads {
    struct sw_core *core;
    struct sw_link objects; /* read.c */
    struct sw_link lists;   /* read_list.c */
};

void sw_reads_init(struct sw_reads *reads, struct sw_core *core);
/* Cancels what is under way; no callback comes. */
void sw_reads_done(struct sw_reads *reads);
/* Cancels those of the instance. */
void sw_reads_forget(struct sw_reads *reads, const struct sw_instance *instance);

/* ---- between the two files ---- */

/* instance NULL: of all. */
void sw_read_lists_forget(struct sw_reads *reads, const struct sw_instance *instance);

#endif
