/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The book of Events: which records become a new Event, which raise the count of one that is there,
 * and which are dropped because they come too fast. Pure: time comes as an argument, and nothing is
 * sent from here.
 *
 * Limits: a bucket per (object, reason) of 25 records, one more every 10 s; 50 a second over all,
 * in bursts of up to 100; 4 096 Events remembered, the least recently used is forgotten (its next
 * repeat is a new Event); an Event that did not happen for as long as the API server keeps it, one
 * hour by default (--event-ttl), is begun anew as well.
 */
#ifndef SW_EVENTS_BOOK_H
#define SW_EVENTS_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/record.h>

#define BOOK_EVENTS_MAX 4096

struct book;

/* One Event, as far as it has to be remembered. */
struct book_event {
    char *name; /* metadata.name; new for each Event */
    char *namespace_;
    int64_t count;    /* how many records it stands for, those not yet written included */
    int64_t first_us; /* wall clock */
    int64_t last_us;
    bool is_stored; /* the API server has it: raise the count by a patch. Set by the user of the
                       book */
    bool is_queued; /* waits to be written. Set by the user of the book */
    /* of the record */
    enum sw_record_type type;
    const struct sw_kind *kind;
    char *reason, *message, *component;
    char *object_name, *uid, *resource_version;
};

struct book *book_new(void);
struct book *book_free(struct book *book); /* takes NULL; returns NULL */

/* The Event that the record belongs to, with count and times raised; NULL if it is dropped. Valid
 * until the book forgets it: never while is_queued. now_ms: monotonic. */
struct book_event *book_enter(struct book *book, const struct sw_record *record, uint64_t now_ms,
                              int64_t wall_us);
/* The API server does not have it any more: the same Event, its count and its times, under a new
 * name made of wall_us, to be created. */
void book_renew(struct book *book, struct book_event *event, int64_t wall_us);
size_t book_size(const struct book *book);

#endif
