/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What remains of an action while its answer is awaited. The run that made it has looked at a whole
 * namespace; hundreds of writes may wait for the rate limit, and none of them needs that any more.
 */
#include "plan.h"

static const char *keep_text(const char *text, struct sw_arena *arena)
{
    return text ? sw_arena_strdup(arena, text) : NULL;
}

static const char *const *keep_texts(const char *const *texts, uint32_t count,
                                     struct sw_arena *arena)
{
    const char **kept = SW_ARENA_ARRAY(arena, (size_t)count + 1, const char *);

    for (uint32_t i = 0; i < count; i++)
        kept[i] = keep_text(texts[i], arena);
    return kept;
}

static struct coord_remark *keep_remarks(const struct coord_remark *remarks, struct sw_arena *arena)
{
    struct coord_remark *first = NULL, **last = &first;

    for (; remarks; remarks = remarks->next) {
        struct coord_remark *kept = SW_ARENA_NEW(arena, struct coord_remark);
        *kept = *remarks;
        kept->name = keep_text(remarks->name, arena);
        kept->reason = keep_text(remarks->reason, arena);
        kept->message = keep_text(remarks->message, arena);
        kept->next = NULL;
        *last = kept;
        last = &kept->next;
    }
    return first;
}

static const struct coord_status *keep_status(const struct coord_status *status,
                                              struct sw_arena *arena)
{
    struct coord_status *kept = SW_ARENA_NEW(arena, struct coord_status);

    *kept = (struct coord_status){
        .active = keep_texts(status->active, status->active_count, arena),
        .active_count = status->active_count,
        .turn = status->turn,
    };
    return kept;
}

struct coord_action *coord_action_keep(const struct coord_action *action, struct sw_arena *arena)
{
    struct coord_action *kept = SW_ARENA_NEW(arena, struct coord_action);

    *kept = *action;
    kept->name = keep_text(action->name, arena);
    kept->resource_version = keep_text(action->resource_version, arena);
    kept->owners = kept->marks = kept->fence = NULL; /* only for sending */
    if (action->status)
        kept->status = keep_status(action->status, arena);
    kept->remarks = keep_remarks(action->remarks, arena);
    kept->failure = keep_text(action->failure, arena);
    kept->groups = keep_texts(action->groups, action->group_count, arena);
    kept->begun = keep_texts(action->begun, action->begun_count, arena);
    kept->begun_rollouts = keep_texts(action->begun_rollouts, action->begun_count, arena);
    kept->next = NULL;
    return kept;
}
