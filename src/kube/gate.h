/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate before one server, shared by all who list and watch there. While the server answers, it
 * is open. Once somebody found the server dead it is closed; after a back-off one of those who wait
 * goes first as the probe, and only its success opens the gate for the others. So a dead server is
 * probed once, not once per kind.
 *
 *   state     what happens                                     next
 *   OPEN      everybody passes                                 CLOSED on a failure
 *   CLOSED    the back-off runs, or is over and nobody waits   PROBING when it is over and one
 * waits PROBING   one has passed, the others wait                  OPEN on a success of anybody;
 *                                                              CLOSED when the probe fails; the
 * next one goes if the probe gives up
 */
#ifndef SW_KUBE_GATE_H
#define SW_KUBE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct sw_gate;
struct sw_gate_pass;
struct sw_loop;

/* Member of whoever wants through. */
typedef void (*sw_gate_fn)(struct sw_gate_pass *pass);
struct sw_gate_pass {
    sw_gate_fn fn;
    struct sw_link link;
};
void sw_gate_pass_init(struct sw_gate_pass *pass, sw_gate_fn fn);

struct sw_gate *sw_gate_new(struct sw_loop *loop, uint64_t first_ms, uint64_t limit_ms);
/* Nobody may wait any more. Takes NULL; returns NULL. */
struct sw_gate *sw_gate_free(struct sw_gate *gate);

/* True: go on now. False: fn comes when it may, never from within this call. */
bool sw_gate_enter(struct sw_gate *gate, struct sw_gate_pass *pass);
/* The server answered. */
void sw_gate_succeed(struct sw_gate *gate);
/* The server could not be reached, broke off, or asked for time (retry_after_ms, 0: it did not). */
void sw_gate_fail(struct sw_gate *gate, struct sw_gate_pass *pass, uint64_t retry_after_ms);
/* Whoever waits, or was let through and has not said how it went, gives up. */
void sw_gate_forget(struct sw_gate *gate, struct sw_gate_pass *pass);

#endif
