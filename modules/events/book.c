/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events are found by a chained hash table and kept in a list in the order of their use. They are
 * few, and what counts here is that their number is bounded. Hashes need no key: a flood of
 * colliding names costs whoever makes it a slower chain of at most 4 096.
 */
#include "book.h"

#include <stdio.h>
#include <string.h>

#include <slipway/memory.h>

#define EVENT_LIFE_MS ((uint64_t)60 * 60 * 1000) /* --event-ttl of kube-apiserver: 1h0m0s */
#define MESSAGE_MAX 1024                         /* longer ones are refused by events.k8s.io/v1 */
#define OBJECT_NAME_MAX                                                       \
    230 /* with "." and 16 digits below the 253 of a DNS subdomain (RFC 1123) \
         */

#define REASON_BURST 25.0
#define REASON_PER_MS (1.0 / 10000.0)
#define ALL_BURST 100.0
#define ALL_PER_MS (50.0 / 1000.0)

#define TABLE_SIZE 4096
#define BUCKETS_SIZE 4096
#define BUCKETS_PROBED 8

struct bucket {
    uint64_t key; /* hash of whose it is */
    double tokens;
    uint64_t at_ms;
    bool is_used;
};

struct slot {
    struct book_event event; /* first: the way back from what book_enter returned */
    uint64_t hash;
    uint64_t used_ms; /* when it was entered last */
    struct slot *newer, *older;
    struct slot *next; /* in the chain */
};

struct book {
    struct slot *table[TABLE_SIZE];
    struct slot *newest, *oldest;
    size_t count;
    uint64_t serial;
    struct bucket all;
    /* Of each (object, reason), among the places that follow its hash. One that is full again says
     * nothing any more: its place is free. */
    struct bucket buckets[BUCKETS_SIZE];
};

/* ---- hash and limits ---- */

/* FNV-1a; the NUL at the end of each part separates them. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (unsigned char)*text) * 1099511628211U;
    } while (*text++);
    return hash;
}

static double tokens_at(const struct bucket *bucket, uint64_t now_ms, double burst, double per_ms)
{
    double tokens = bucket->tokens + (double)(now_ms - bucket->at_ms) * per_ms;

    return !bucket->is_used || tokens > burst ? burst : tokens;
}

static bool take_token(struct bucket *bucket, uint64_t now_ms, double burst, double per_ms)
{
    bucket->tokens = tokens_at(bucket, now_ms, burst, per_ms);
    bucket->at_ms = now_ms;
    bucket->is_used = true;
    if (bucket->tokens < 1.0)
        return false;
    bucket->tokens -= 1.0;
    return true;
}

/* Where no place is free it shares the first: stricter, never laxer. */
static struct bucket *bucket_of(struct book *book, uint64_t key, uint64_t now_ms)
{
    struct bucket *first = &book->buckets[key % BUCKETS_SIZE], *free = NULL;

    for (uint64_t i = 0; i < BUCKETS_PROBED; i++) {
        struct bucket *bucket = &book->buckets[(key + i) % BUCKETS_SIZE];
        if (bucket->is_used && bucket->key == key)
            return bucket;
        if (!free && tokens_at(bucket, now_ms, REASON_BURST, REASON_PER_MS) >= REASON_BURST)
            free = bucket;
    }
    if (!free)
        return first;
    *free = (struct bucket){.key = key};
    return free;
}

/* ---- slots ---- */

static void unlink_used(struct book *book, struct slot *slot)
{
    *(slot->newer ? &slot->newer->older : &book->newest) = slot->older;
    *(slot->older ? &slot->older->newer : &book->oldest) = slot->newer;
    slot->newer = slot->older = NULL;
}

static void link_newest(struct book *book, struct slot *slot)
{
    slot->older = book->newest;
    *(book->newest ? &book->newest->newer : &book->oldest) = slot;
    book->newest = slot;
}

static void free_slot(struct slot *slot)
{
    struct book_event *event = &slot->event;

    sw_free(event->name);
    sw_free(event->namespace_);
    sw_free(event->reason);
    sw_free(event->message);
    sw_free(event->component);
    sw_free(event->object_name);
    sw_free(event->uid);
    sw_free(event->resource_version);
    sw_free(slot);
}

static void forget(struct book *book, struct slot *slot)
{
    struct slot **at = &book->table[slot->hash % TABLE_SIZE];

    while (*at != slot)
        at = &(*at)->next;
    *at = slot->next;
    unlink_used(book, slot);
    book->count--;
    free_slot(slot);
}

/* Makes room by forgetting the least recently used that is not being written. */
static bool make_room(struct book *book)
{
    struct slot *slot = book->oldest;

    if (book->count < BOOK_EVENTS_MAX)
        return true;
    while (slot && slot->event.is_queued)
        slot = slot->newer;
    if (slot)
        forget(book, slot);
    return slot != NULL;
}

/* ---- messages ---- */

/* At most MESSAGE_MAX bytes, cut between two characters of UTF-8. */
static char *cut_message(const char *message)
{
    size_t len = strlen(message);

    if (len > MESSAGE_MAX) {
        len = MESSAGE_MAX - 3;
        while (len > 0 && ((unsigned char)message[len] & 0xc0) == 0x80)
            len--;
        return sw_asprintf("%.*s...", (int)len, message);
    }
    return sw_strdup(message);
}

/* As client-go names them: the object, and the time in hexadecimal nanoseconds; the serial keeps
 * two of one microsecond apart. */
static void begin(struct book *book, struct slot *slot, int64_t wall_us)
{
    struct book_event *event = &slot->event;

    sw_free(event->name);
    event->name =
        sw_asprintf("%.*s.%llx", OBJECT_NAME_MAX, event->object_name,
                    (unsigned long long)((uint64_t)wall_us * 1000 + book->serial++ % 1000));
    event->is_stored = false;
    event->count = 0;
    event->first_us = wall_us;
}

static bool is_of(const struct book_event *event, const struct sw_record *record,
                  const char *message)
{
    return event->type == record->type && strcmp(event->uid, record->uid) == 0 &&
           strcmp(event->reason, record->reason) == 0 && strcmp(event->message, message) == 0;
}

static struct slot *find(struct book *book, uint64_t hash, const struct sw_record *record,
                         const char *message)
{
    struct slot *slot = book->table[hash % TABLE_SIZE];

    while (slot && !(slot->hash == hash && is_of(&slot->event, record, message)))
        slot = slot->next;
    return slot;
}

static struct slot *add(struct book *book, uint64_t hash, const struct sw_record *record,
                        const char *message)
{
    struct slot *slot = SW_NEW(struct slot);

    slot->hash = hash;
    slot->event = (struct book_event){
        .namespace_ = sw_strdup(record->namespace_[0] ? record->namespace_ : "default"),
        .type = record->type,
        .kind = record->kind,
        .reason = sw_strdup(record->reason),
        .message = sw_strdup(message),
        .component = sw_strdup(record->component),
        .object_name = sw_strdup(record->name),
        .uid = sw_strdup(record->uid),
        .resource_version = sw_strdup(record->resource_version),
    };
    slot->next = book->table[hash % TABLE_SIZE];
    book->table[hash % TABLE_SIZE] = slot;
    link_newest(book, slot);
    book->count++;
    return slot;
}

/* ---- the book ---- */

struct book *book_new(void)
{
    return SW_NEW(struct book);
}

struct book *book_free(struct book *book)
{
    if (!book)
        return NULL;
    while (book->oldest)
        forget(book, book->oldest);
    return sw_free(book);
}

static struct slot *enter(struct book *book, const struct sw_record *record, const char *message,
                          uint64_t reason_hash, uint64_t now_ms, int64_t wall_us)
{
    uint64_t hash = hash_text(reason_hash, message) + record->type;
    struct slot *slot = find(book, hash, record, message);

    if (!slot) {
        if (!make_room(book))
            return NULL;
        slot = add(book, hash, record, message);
        begin(book, slot, wall_us);
    } else {
        unlink_used(book, slot);
        link_newest(book, slot);
        /* Each write lets it live for another hour. */
        if (now_ms - slot->used_ms >= EVENT_LIFE_MS && !slot->event.is_queued)
            begin(book, slot, wall_us);
    }
    slot->used_ms = now_ms;
    slot->event.count++;
    slot->event.last_us = wall_us;
    return slot;
}

struct book_event *book_enter(struct book *book, const struct sw_record *record, uint64_t now_ms,
                              int64_t wall_us)
{
    uint64_t reason_hash = hash_text(hash_text(14695981039346656037U, record->uid), record->reason);
    struct bucket *bucket = bucket_of(book, reason_hash, now_ms);

    if (!take_token(bucket, now_ms, REASON_BURST, REASON_PER_MS))
        return NULL;
    if (!take_token(&book->all, now_ms, ALL_BURST, ALL_PER_MS))
        return NULL;
    char *message = cut_message(record->message);
    struct slot *slot = enter(book, record, message, reason_hash, now_ms, wall_us);
    sw_free(message);
    return slot ? &slot->event : NULL;
}

void book_renew(struct book *book, struct book_event *event, int64_t wall_us)
{
    int64_t count = event->count;
    int64_t first_us = event->first_us;

    begin(book, (struct slot *)(void *)event, wall_us);
    event->count = count;
    event->first_us = first_us;
}

size_t book_size(const struct book *book)
{
    return book->count;
}
