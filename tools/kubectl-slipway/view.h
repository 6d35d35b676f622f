/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `status` shows of a coordination: its state in one word, who rolls, who waits. Pure: from
 * the world and the time to rows, a table and JSON.
 */
#ifndef KS_VIEW_H
#define KS_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "table.h"
#include "world.h"

struct sw_json;

enum ks_state {
    KS_IDLE,      /* nothing to roll */
    KS_ROLLING,   /* somebody has the turn */
    KS_PENDING,   /* somebody waits, nobody has the turn yet */
    KS_SUSPENDED, /* spec.suspend */
    KS_BLOCKED,   /* nobody is activated: the guard, or a pause of the active one */
    KS_FAILING,   /* the active one has failed */
    KS_BROKEN,    /* selector, or a write that fails */
    KS_UNSEEN,    /* slipway has not looked at it since its spec was last changed */
};

const char *ks_state_text(enum ks_state state);

struct ks_member_view {
    const char *name;
    int32_t position;    /* 0: has the turn; from 1: waits; -1: neither, but there is a message */
    int64_t since_us;    /* 0: not known */
    int32_t done, want;  /* Pods of the new template that are available */
    bool is_known;       /* the Deployment itself has been seen */
    const char *message; /* "" */
};

struct ks_group_view {
    const char *namespace_, *name;
    enum ks_state state;
    const char *reason, *message; /* of the condition that explains the state; "" */
    bool is_suspended, is_truncated;
    int32_t max_active, selected, pending;
    uint32_t active;
    const struct ks_member_view *members; /* active, waiting in order, then those with a message */
    uint32_t member_count;
};

/* In the arena; texts are borrowed from the world. */
struct ks_group_view *ks_view(struct sw_arena *arena, const struct ks_world *world,
                              const struct ks_group *group);
enum ks_state ks_state_of(const struct coordination *c);

struct ks_look {
    int64_t now_us;
    bool is_coloured, is_utf8, has_namespaces;
    size_t columns; /* 0: never cut */
};

void ks_view_print(struct sw_arena *arena, struct ks_group_view *const *views, size_t count,
                   const struct ks_look *look, struct sw_buf *out);
struct sw_json *ks_view_json(struct sw_arena *arena, struct ks_group_view *const *views,
                             size_t count, int64_t now_us);
/* For a watch that is not on a terminal: "shop/shop: Rolling: cart 2/3; then catalog, checkout". */
const char *ks_view_line(struct sw_arena *arena, const struct ks_group_view *view);

#endif
