/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one namespace: its life, and its union with what a snapshot shows. It holds an
 * entry for every Deployment that is there or recorded as active, and one for every coordination;
 * entries that nobody needs go, unless an answer for them is still to come.
 */
#include "work.h"

#include <stdlib.h>

void coord_memory_set(char **at, const char *text)
{
    if (*at && text && strcmp(*at, text) == 0)
        return;
    sw_free(*at);
    *at = text ? sw_strdup(text) : NULL;
}

/* ---- groups ---- */

static void forget_leavers(struct group_memory *group)
{
    for (uint32_t i = 0; i < group->leaver_count; i++)
        sw_free(group->leavers[i].name);
    group->leavers = sw_free(group->leavers);
    group->leaver_count = 0;
}

static struct group_memory *group_free(struct group_memory *group)
{
    if (!group)
        return NULL;
    forget_leavers(group);
    sw_free(group->name);
    sw_free(group->uid);
    sw_free(group->version);
    sw_free(group->requests.refused_version);
    sw_free(group->read_version);
    sw_free(group->blocker);
    return sw_free(group);
}

struct leaver *coord_memory_leaver(struct group_memory *group, const char *name, bool is_added)
{
    for (uint32_t i = 0; i < group->leaver_count; i++)
        if (strcmp(group->leavers[i].name, name) == 0)
            return &group->leavers[i];
    if (!is_added)
        return NULL;
    group->leavers = sw_realloc(group->leavers, group->leaver_count + 1, sizeof *group->leavers);
    struct leaver *leaver = &group->leavers[group->leaver_count++];
    *leaver = (struct leaver){.name = sw_strdup(name)};
    return leaver;
}

void coord_memory_forget_leaver(struct group_memory *group, const char *name)
{
    for (uint32_t i = 0; i < group->leaver_count; i++) {
        if (strcmp(group->leavers[i].name, name) != 0)
            continue;
        sw_free(group->leavers[i].name);
        group->leavers[i] = group->leavers[--group->leaver_count];
        return;
    }
}

/* Somebody else has written it: what the chain had reached counts no more. */
static void sync_version(struct group_memory *group, const char *version)
{
    if (group->requests.writing || (group->version && strcmp(group->version, version) == 0))
        return;
    coord_memory_set(&group->version, version);
    group->epoch++;
    group->own_sequence = 0;
    for (uint32_t i = 0; i < group->leaver_count; i++) {
        group->leavers[i].is_fenced = group->leavers[i].is_taken = false;
        group->leavers[i].taking = 0;
    }
}

static int compare_seen_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static struct group_memory *group_new(const struct coordination *c)
{
    struct group_memory *group = SW_NEW(struct group_memory);

    group->name = sw_strdup(c->meta.name);
    group->uid = sw_strdup(c->meta.uid);
    group->generation = c->meta.generation;
    group->blocked_since_ms = NEVER;
    group->handing_since_ms = NEVER;
    return group;
}

static void sync_groups(struct work *work)
{
    struct coord_memory *memory = work->memory;
    const struct coord_snapshot *snapshot = work->snapshot;
    size_t count = snapshot->group_count;
    struct group_memory **next = sw_calloc(count + 1, sizeof(struct group_memory *));
    uint32_t old = 0;
    bool has_changed = count != memory->group_count;

    work->groups = SW_ARENA_ARRAY(work->arena, count + 1, struct group);
    work->group_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        work->groups[i].seen = &snapshot->groups[i];
        work->groups[i].c = snapshot->groups[i].object;
        work->groups[i].name = snapshot->groups[i].object->meta.name;
    }
    qsort(work->groups, count, sizeof *work->groups, compare_seen_groups);
    for (size_t i = 0; i < count; i++) {
        struct group *group = &work->groups[i];
        const struct coordination *c = group->c;
        while (old < memory->group_count && strcmp(memory->groups[old]->name, group->name) < 0)
            group_free(memory->groups[old++]);
        if (old < memory->group_count && strcmp(memory->groups[old]->name, group->name) == 0) {
            next[i] = memory->groups[old++];
            if (strcmp(next[i]->uid, c->meta.uid) != 0) {
                group_free(next[i]);
                next[i] = NULL;
            }
        }
        if (!next[i]) {
            next[i] = group_new(c);
            has_changed = true;
        }
        group->m = next[i];
        if (group->m->generation != c->meta.generation) {
            group->m->generation = c->meta.generation;
            group->m->is_too_large = false;
            has_changed = true;
        }
        sync_version(group->m, c->meta.resource_version);
    }
    while (old < memory->group_count)
        group_free(memory->groups[old++]);
    sw_free(memory->groups);
    memory->groups = next;
    memory->group_count = (uint32_t)count;
    if (has_changed)
        memory->selection++;
}

/* ---- members ---- */

static void member_reset(struct member_memory *member)
{
    sw_free(member->uid);
    sw_free(member->version);
    sw_free(member->groups);
    sw_free(member->known_version);
    sw_free(member->requests.refused_version);
    sw_free(member->error);
    *member = (struct member_memory){
        .name = member->name,
        .full = member->full,
        .requests = {.writing = member->requests.writing, .reading = member->requests.reading},
        .empty_since_ms = NEVER,
        .complete_since_ms = NEVER,
        .served = INT32_MAX,
        .stale_deadline_us = NO_TIME,
    };
}

static struct member_memory *member_new(const char *namespace_, const char *name)
{
    struct member_memory *member = SW_NEW(struct member_memory);

    member->full = sw_asprintf("%s/%s", namespace_, name);
    member->name = member->full + strlen(namespace_) + 1;
    member_reset(member);
    return member;
}

static struct member_memory *member_free(struct member_memory *member)
{
    if (!member)
        return NULL;
    member_reset(member);
    sw_free(member->full);
    return sw_free(member);
}

/* No object bears another name, so nobody can be asked for it (RFC 1123, as Kubernetes has it). */
static bool is_name(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.");

    return len > 0 && len <= 253 && !text[len] && text[0] != '.' && text[0] != '-';
}

/* The name behind "namespace/"; NULL where it is another namespace, or none. A bare name is one of
 * ours. */
static const char *recorded_name(const struct work *work, const char *full)
{
    size_t len = strlen(work->snapshot->namespace_);
    const char *slash = strchr(full, '/');
    bool is_ours = slash && (size_t)(slash - full) == len &&
                   memcmp(full, work->snapshot->namespace_, len) == 0;

    if (slash && !is_ours)
        return NULL;
    const char *name = slash ? slash + 1 : full;
    return is_name(name) ? name : NULL;
}

static uint32_t recorded_count(const struct coordination *c)
{
    if (c->active_deployments.count > 0)
        return c->active_deployments.count;
    return c->active_deployment[0] ? 1 : 0;
}

static const char *recorded_at(const struct coordination *c, uint32_t index)
{
    return c->active_deployments.count > 0 ? c->active_deployments.at[index] : c->active_deployment;
}

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (y->d != NULL) - (x->d != NULL);
}

/* Those of the snapshot and those recorded, by name. */
static void gather_members(struct work *work)
{
    const struct coord_snapshot *snapshot = work->snapshot;
    size_t most = snapshot->deployment_count;
    uint32_t count = 0, kept = 0;

    for (uint32_t g = 0; g < work->group_count; g++)
        most += recorded_count(work->groups[g].c);
    work->members = SW_ARENA_ARRAY(work->arena, most + 1, struct member);
    for (size_t i = 0; i < snapshot->deployment_count; i++) {
        struct member *member = &work->members[count++];
        member->seen = &snapshot->deployments[i];
        member->d = member->seen->object;
        member->name = member->d->meta.name;
    }
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct group *group = &work->groups[g];
        group->place_count = recorded_count(group->c);
        group->places = SW_ARENA_ARRAY(work->arena, group->place_count + 1, struct place);
        for (uint32_t i = 0; i < group->place_count; i++) {
            const char *full = recorded_at(group->c, i);
            const char *name = recorded_name(work, full);
            group->places[i].name = name ? name : full;
            if (name)
                work->members[count++].name = name;
        }
    }
    qsort(work->members, count, sizeof *work->members, compare_members);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(work->members[kept - 1].name, work->members[i].name) != 0)
            work->members[kept++] = work->members[i];
    work->member_count = kept;
}

static int compare_name_to_member(const void *key, const void *at)
{
    const struct member *member = at;

    return strcmp(key, member->name);
}

struct member *coord_memory_find(const struct work *work, const char *name)
{
    return bsearch(name, work->members, work->member_count, sizeof *work->members,
                   compare_name_to_member);
}

/* A name twice in one record counts once. */
static void resolve_places(struct work *work)
{
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct group *group = &work->groups[g];
        for (uint32_t i = 0; i < group->place_count; i++) {
            struct place *place = &group->places[i];
            place->member = coord_memory_find(work, place->name);
            if (place->member)
                place->member->is_recorded = true;
        }
    }
}

static void sync_identity(struct member *member)
{
    struct member_memory *m = member->m;

    if (!member->d) {
        coord_memory_set(&m->known_version, NULL);
        return;
    }
    const char *uid = member->d->meta.uid;
    if (m->uid && strcmp(m->uid, uid) != 0) {
        member_reset(m);
        m->is_stranger = m->has_history = true;
    }
    if (!member->is_recorded)
        m->is_stranger = false;
    coord_memory_set(&m->uid, uid);
}

static void sync_members(struct work *work)
{
    struct coord_memory *memory = work->memory;
    struct member_memory **next =
        sw_calloc((size_t)work->member_count + memory->member_count + 1, sizeof *next);
    uint32_t old = 0, count = 0;

    for (uint32_t i = 0; i <= work->member_count; i++) {
        struct member *member = i < work->member_count ? &work->members[i] : NULL;
        while (old < memory->member_count &&
               (!member || strcmp(memory->members[old]->name, member->name) < 0)) {
            struct member_memory *m = memory->members[old++];
            if (m->requests.writing || m->requests.reading)
                next[count++] = m;
            else
                member_free(m);
        }
        if (!member)
            break;
        if (old < memory->member_count && strcmp(memory->members[old]->name, member->name) == 0)
            member->m = memory->members[old++];
        else
            member->m = member_new(work->snapshot->namespace_, member->name);
        next[count++] = member->m;
        member->name = member->m->name;
        sync_identity(member);
    }
    sw_free(memory->members);
    memory->members = next;
    memory->member_count = count;
}

void coord_memory_sync(struct work *work)
{
    sync_groups(work);
    gather_members(work);
    resolve_places(work);
    sync_members(work);
}

/* ---- look-up ---- */

struct member_memory *coord_memory_member(const struct coord_memory *memory, const char *name)
{
    uint32_t low = 0, high = memory->member_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(name, memory->members[middle]->name);
        if (order == 0)
            return memory->members[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

struct group_memory *coord_memory_group(const struct coord_memory *memory, const char *name)
{
    uint32_t low = 0, high = memory->group_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(name, memory->groups[middle]->name);
        if (order == 0)
            return memory->groups[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- its life ---- */

struct coord_memory *coord_memory_new(void)
{
    return SW_NEW(struct coord_memory);
}

struct coord_memory *coord_memory_free(struct coord_memory *memory)
{
    if (!memory)
        return NULL;
    for (uint32_t i = 0; i < memory->member_count; i++)
        member_free(memory->members[i]);
    for (uint32_t i = 0; i < memory->group_count; i++)
        group_free(memory->groups[i]);
    for (uint32_t i = 0; i < memory->missing_count; i++)
        sw_free(memory->missing[i].name);
    sw_free(memory->members);
    sw_free(memory->groups);
    sw_free(memory->missing);
    return sw_free(memory);
}

bool coord_memory_is_idle(const struct coord_memory *memory)
{
    return memory->group_count == 0 && memory->missing_count == 0 && memory->under_way == 0;
}

static struct missing *missing_add(struct coord_memory *memory, const char *name, size_t len)
{
    for (uint32_t i = 0; i < memory->missing_count; i++)
        if (strlen(memory->missing[i].name) == len &&
            memcmp(memory->missing[i].name, name, len) == 0)
            return &memory->missing[i];
    memory->missing =
        sw_realloc(memory->missing, memory->missing_count + 1, sizeof *memory->missing);
    struct missing *missing = &memory->missing[memory->missing_count++];
    *missing = (struct missing){.name = sw_strndup(name, len)};
    return missing;
}

struct missing *coord_memory_missing(struct coord_memory *memory, const char *name, size_t len)
{
    return missing_add(memory, name, len);
}

void coord_saw_deleted(struct coord_memory *memory, const char *name)
{
    missing_add(memory, name, strlen(name))->is_vanished = true;
}
