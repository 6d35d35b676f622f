/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who selects whom, and what should therefore stand on each Deployment. The result of a match is
 * kept in the memory for as long as neither the object nor any coordination's spec has changed, so
 * that a change costs matches for one object only.
 */
#include "work.h"

#include <stdlib.h>

/* ---- lists ---- */

const char *coord_list_next(const char **list, size_t *ret_len)
{
    const char *p = *list;

    while (*p == ',' || *p == ' ')
        p++;
    if (!*p)
        return NULL;
    size_t len = strcspn(p, ",");
    *list = p + len;
    while (len > 0 && p[len - 1] == ' ')
        len--;
    *ret_len = len;
    return p;
}

bool coord_list_names(const char *list, const char *token)
{
    size_t wanted = strlen(token), len;
    const char *at;

    while ((at = coord_list_next(&list, &len)))
        if (len == wanted && memcmp(at, token, len) == 0)
            return true;
    return false;
}

const char *coord_owner_name(const char *token, size_t len, size_t *ret_len)
{
    static const char prefix[] = COORD_POLICY "/";
    size_t skip = sizeof prefix - 1;

    if (len <= skip || memcmp(token, prefix, skip) != 0)
        return NULL;
    *ret_len = len - skip;
    return token + skip;
}

bool coord_list_names_us(const char *list)
{
    const char *at;
    size_t len;

    while ((at = coord_list_next(&list, &len)))
        if (coord_owner_name(at, len, &len))
            return true;
    return false;
}

/* Another policy; what a person wishes for is a matter of its own. */
static bool names_another(const char *list)
{
    static const char user[] = "user";
    const char *at;
    size_t len, name_len;

    while ((at = coord_list_next(&list, &len)))
        if (!coord_owner_name(at, len, &name_len) &&
            !(len == sizeof user - 1 && memcmp(at, user, len) == 0))
            return true;
    return false;
}

/* ---- what is on the object ---- */

static const char *annotation(const struct sw_deployment *d, const char *key)
{
    const char *value = sw_annotation(&d->meta, key);

    return value ? value : "";
}

static void read_annotations(struct member *member)
{
    const struct sw_deployment *d = member->d;
    const struct coord_seen_deployment *seen = member->seen;

    member->held_by = annotation(d, SW_HELD_BY);
    member->released_by = annotation(d, SW_RELEASED_BY);
    member->marked = annotation(d, SW_COORDINATED_BY);
    member->has_hold = coord_list_names_us(member->held_by);
    member->has_right = coord_list_names_us(member->released_by);
    member->is_users_pause = d->is_paused && !member->held_by[0];
    bool is_paused_by_another = d->is_paused && names_another(member->held_by) && !member->has_hold;
    member->is_held = (seen->others != SW_VERDICT_FREE && names_another(seen->others_owners)) ||
                      (seen->others_select && is_paused_by_another);
    member->is_given_up = seen->others_gave_it_up;
    member->is_leaving_cluster = d->meta.deleted_us != 0;
    member->is_empty = d->replicas == 0 && d->status_replicas == 0;
    member->order = strtoll(annotation(d, SW_ORDER), NULL, 10);
    if (sw_annotation(&d->meta, SW_SKIP) &&
        sw_time_from_text(annotation(d, SW_SKIP), &member->skip_us) != 0)
        member->skip_us = 0;
}

/* ---- who selects it ---- */

static void match(struct work *work, struct member *member)
{
    struct member_memory *m = member->m;
    const struct sw_object *object = &member->d->meta;
    uint32_t count = 0;

    if (m->selection == work->memory->selection && m->version &&
        strcmp(m->version, object->resource_version) == 0)
        return;
    coord_memory_set(&m->version, object->resource_version);
    m->selection = work->memory->selection;
    m->groups = sw_realloc(m->groups, (size_t)work->group_count + 1, sizeof *m->groups);
    if (strcmp(annotation(member->d, SW_IGNORE), "true") != 0)
        for (uint32_t g = 0; g < work->group_count; g++) {
            const struct sw_selector *selector = work->groups[g].seen->selector;
            if (selector && sw_selector_matches(selector, &object->labels))
                m->groups[count++] = g;
        }
    m->groups = sw_realloc(m->groups, (size_t)count + 1, sizeof *m->groups);
    m->group_count = count;
}

static void name_groups(struct work *work, struct member *member)
{
    size_t size = 1;

    for (uint32_t i = 0; i < member->group_count; i++)
        size += strlen(member->groups[i]->name) + sizeof COORD_POLICY + 1;
    if (member->group_count == 1) {
        member->marks = member->groups[0]->name;
        member->owners = sw_arena_printf(work->arena, COORD_POLICY "/%s", member->marks);
        return;
    }
    char *marks = sw_arena_alloc(work->arena, size), *owners = sw_arena_alloc(work->arena, size);
    char *mark = marks, *owner = owners;
    for (uint32_t i = 0; i < member->group_count; i++) {
        if (i > 0)
            *mark++ = *owner++ = ',';
        mark = stpcpy(mark, member->groups[i]->name);
        owner = stpcpy(stpcpy(owner, COORD_POLICY "/"), member->groups[i]->name);
    }
    member->marks = marks;
    member->owners = owners;
}

static void select_one(struct work *work, struct member *member)
{
    match(work, member);
    member->group_count = member->m->group_count;
    member->groups = SW_ARENA_ARRAY(work->arena, member->group_count + 1, struct group *);
    member->rests_running = member->group_count > 0;
    for (uint32_t i = 0; i < member->group_count; i++) {
        member->groups[i] = &work->groups[member->m->groups[i]];
        if (!member->groups[i]->rests_running)
            member->rests_running = false;
        if (!member->is_leaving_cluster)
            member->groups[i]->member_count++;
    }
    name_groups(work, member);
}

static void read_spec(struct work *work, struct group *group)
{
    const struct coordination *c = group->c;
    const char *skip = sw_annotation(&c->meta, COORD_SKIP_GUARD);

    group->max_active = c->max_active > 0 ? (uint32_t)c->max_active : 1;
    group->has_guard =
        strcmp(c->availability_guard, "Off") != 0 && !(skip && strcmp(skip, "true") == 0);
    group->skips_failed = strcmp(c->failure_policy, "Skip") == 0;
    if (c->at_rest[0])
        group->rests_running = strcmp(c->at_rest, "Running") == 0;
    else
        group->rests_running = work->snapshot->rests_running;
}

void coord_select(struct work *work)
{
    for (uint32_t g = 0; g < work->group_count; g++)
        read_spec(work, &work->groups[g]);
    for (uint32_t i = 0; i < work->member_count; i++) {
        struct member *member = &work->members[i];
        member->held_by = member->released_by = member->marked = member->marks = member->owners =
            "";
        if (!member->d)
            continue;
        read_annotations(member);
        select_one(work, member);
    }
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct group *group = &work->groups[g];
        group->members = SW_ARENA_ARRAY(work->arena, group->member_count + 1, struct member *);
        group->member_count = 0;
    }
    for (uint32_t i = 0; i < work->member_count; i++) {
        struct member *member = &work->members[i];
        if (!member->d || member->is_leaving_cluster)
            continue;
        for (uint32_t k = 0; k < member->group_count; k++) {
            struct group *group = member->groups[k];
            group->members[group->member_count++] = member;
        }
    }
}
