/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written in a Lease: reading it, and the object to send next. No clock, no requests.
 */
#ifndef SW_KUBE_LEASE_RECORD_H
#define SW_KUBE_LEASE_RECORD_H

#include <stddef.h>
#include <stdint.h>

struct sw_error;

/* Ours is never set longer. A record with more was not written by one of us: somebody has edited
 * it, and nobody may have to wait for years. */
#define SW_LEASE_DURATION_MAX_MS INT64_C(600000)

/* The Lease as the API server sent it last. All members are NULL or 0 while there is none. */
struct sw_lease_record {
    char *text;          /* the whole object: what is sent back is this with another spec */
    char *version;       /* of the object */
    char *spec;          /* compact: equal means that nobody has renewed */
    char *holder;        /* "": nobody */
    int64_t duration_ms; /* 0: not said, or no such that anybody can mean it */
    int64_t transitions;
};

/* Replaces *record. SW_E_SYNTAX with why; then nothing has changed. */
int sw_lease_record_read(struct sw_lease_record *record, const char *text, size_t len,
                         struct sw_error *error);
void sw_lease_record_clear(struct sw_lease_record *record);

enum sw_lease_write {
    SW_LEASE_CREATE,
    SW_LEASE_TAKE,
    SW_LEASE_RENEW,
    SW_LEASE_RELEASE,
};

struct sw_lease_change {
    enum sw_lease_write what;
    const char *namespace_, *name; /* CREATE */
    const char *identity;
    int64_t duration_s;
    int64_t transitions;
    int64_t wall_us;
};

/* The object to send: the one of the record (of which everything unknown is kept) with the spec
 * changed; CREATE: a new one. New memory. */
char *sw_lease_record_write(const struct sw_lease_record *record,
                            const struct sw_lease_change *change, size_t *ret_len);

#endif
