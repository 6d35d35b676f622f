/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether this process leads, that is: whether its modules may write.
 *
 *   state      what happens                                   next
 *   FOLLOWING  others lead, or nobody; we try for the lease   LISTING when it is won
 *   LISTING    the lease is ours; every kind that is watched  LEADING when all are listed and our
 *              is listed anew by a consistent read            name is known; FOLLOWING when lost
 *   LEADING    modules have been told and may write           FOLLOWING when lost
 *   ENDED      we have been told to stop                      -
 *
 * Without an election the process is LISTING from the start, and the first lists count.
 */
#ifndef SW_RUNTIME_LEADING_H
#define SW_RUNTIME_LEADING_H

#include <stdbool.h>
#include <stdint.h>

struct sw_core;
struct sw_kind_entry;
struct sw_lease;
struct sw_lease_options;

enum sw_leading_state {
    SW_FOLLOWING,
    SW_LISTING,
    SW_LEADING,
    SW_ENDED,
};

struct sw_leading {
    struct sw_core *core;
    enum sw_leading_state state;
    struct sw_lease_options *options; /* NULL: no election */
    struct sw_lease *lease;
    uint64_t overdue_since_ms; /* leads although the lease has run out: a fault; 0: it does not */
};

void sw_leading_init(struct sw_leading *leading, struct sw_core *core,
                     const struct sw_lease_options *options);
void sw_leading_done(struct sw_leading *leading);
void sw_leading_open(struct sw_leading *leading);
void sw_leading_on_listed(struct sw_leading *leading, struct sw_kind_entry *entry,
                          bool is_consistent);
/* Looks whether LISTING is over. */
void sw_leading_look(struct sw_leading *leading);

/* Asks the clock too: false from the moment when the lease runs out, whatever was noticed. */
bool sw_leading_is_on(const struct sw_leading *leading);
int64_t sw_leading_term(const struct sw_leading *leading);
/* How long it has led without a lease, as far as this function was asked: for /healthz. */
uint64_t sw_leading_overdue_ms(struct sw_leading *leading);

/* Modules are told that they lead no more; nothing is cut off, and the lease stays. */
void sw_leading_end(struct sw_leading *leading);
/* Gives the lease back; done comes once, at once where there is none. */
void sw_leading_release(struct sw_leading *leading, void (*done)(void *arg), void *arg);

#endif
