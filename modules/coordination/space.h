/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespaces that have a coordination, or had one whose traces are still there: parsed
 * selectors for everybody, and the memory of the plan on the leader. A table by name.
 */
#ifndef SW_COORDINATION_SPACE_H
#define SW_COORDINATION_SPACE_H

#include "observer.h"
#include "plan.h"

struct space_group {
    char *name;
    char *uid;
    int64_t generation;
    struct sw_selector *selector; /* NULL: absent or invalid, and error says why */
    char *error;
    uint32_t max_active;
    /* meter.c */
    bool is_over;                /* more of it roll than may */
    struct coord_series *series; /* its own ones; NULL: none yet, or summed with others */
};

struct space {
    char *namespace_;
    struct space_group *groups; /* by name */
    uint32_t group_count;
    struct coord_memory *memory;     /* NULL: not leading, or nothing to remember */
    struct coord_result facts;       /* of the last run: the counts only */
    struct coord_observer *observer; /* NULL: no group */
    bool is_uncounted;               /* a list has changed what rolls; its end is awaited */
    struct space *next;
};

struct space_table;

SW_NONNULL struct space_table *coord_spaces_new(void);
struct space_table *coord_spaces_free(struct space_table *table);
struct space *coord_space_get(const struct space_table *table, const char *namespace_);
SW_NONNULL struct space *coord_space_add(struct space_table *table, const char *namespace_);
/* Frees it if it holds nothing. */
void coord_space_tidy(struct space_table *table, struct space *space);
void coord_spaces_each(const struct space_table *table, void (*visit)(void *arg, struct space *),
                       void *arg);

/* A coordination came or changed: parses its selector where that has changed. */
void coord_space_put(struct space *space, const struct coordination *c);
/* NULL: none of that name. */
struct space_group *coord_space_group(const struct space *space, const char *name);
void coord_space_remove(struct space *space, const char *name);

#endif
