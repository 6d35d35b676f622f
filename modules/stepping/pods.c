/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at Pods and remembers what it saw of each, sorted by uid, until the next look.
 */
#include "pods.h"

#include <stdlib.h>
#include <string.h>

#include <slipway/memory.h>

#define SECOND_US 1000000

/* The kubelet gives a Pod its startTime and its first Ready=False in one status, in whole seconds;
 * a transition later than this means that it was ready in between. */
#define FIRST_STATUS_US ((int64_t)2 * SECOND_US)

struct seen {
    const char *uid;
    bool was_ready, is_ready;
    int64_t since_us;   /* last transition of Ready */
    int64_t unready_us; /* of the times that are over */
};

struct step_pods_memory {
    struct sw_arena *arena;
    const struct seen *at;
    size_t count;
};

struct step_pods_memory *step_pods_memory_new(void)
{
    return SW_NEW(struct step_pods_memory);
}

struct step_pods_memory *step_pods_memory_free(struct step_pods_memory *memory)
{
    if (memory)
        sw_arena_free(memory->arena);
    return sw_free(memory);
}

/* ---- which Pods ---- */

static bool counts(const struct sw_pod *pod, const char *owner_uid)
{
    return !pod->meta.deleted_us && strcmp(pod->phase, "Failed") != 0 &&
           strcmp(pod->phase, "Succeeded") != 0 &&
           (!owner_uid[0] || strcmp(pod->meta.owner_uid, owner_uid) == 0);
}

static int by_uid(const void *a, const void *b)
{
    const struct sw_pod *const *left = a;
    const struct sw_pod *const *right = b;

    return strcmp((*left)->meta.uid, (*right)->meta.uid);
}

static size_t choose(const struct sw_object *const *pods, size_t count, const char *owner_uid,
                     const struct sw_pod **ret_chosen)
{
    size_t chosen = 0;

    for (size_t i = 0; i < count; i++) {
        const struct sw_pod *pod = (const struct sw_pod *)(const void *)pods[i];
        if (counts(pod, owner_uid))
            ret_chosen[chosen++] = pod;
    }
    qsort(ret_chosen, chosen, sizeof(struct sw_pod *), by_uid);
    return chosen;
}

/* ---- restarts ---- */

static int64_t restarts_in(const struct sw_list *containers,
                           const struct sw_container_status **worst)
{
    const struct sw_container_status *at = containers->at;
    int64_t sum = 0;

    for (uint32_t i = 0; i < containers->count; i++) {
        sum += at[i].restart_count;
        if (at[i].restart_count > (*worst ? (*worst)->restart_count : 0))
            *worst = &at[i];
    }
    return sum;
}

static void judge_restarts(const struct sw_pod *const *pods, size_t count, int32_t max_restarts,
                           struct sw_arena *arena, struct step_check *check)
{
    const struct sw_container_status *worst = NULL;
    const struct sw_pod *worst_pod = NULL;
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        const struct sw_container_status *before = worst;
        sum += restarts_in(&pods[i]->containers, &worst);
        sum += restarts_in(&pods[i]->init_containers, &worst);
        worst_pod = worst != before ? pods[i] : worst_pod;
    }
    check->value = sw_arena_printf(arena, "%lld", (long long)sum);
    check->has_passed = sum <= max_restarts;
    if (!check->has_passed)
        check->message = sw_arena_printf(
            arena, "new Pods were restarted %lld times, container %s of %s %d times%s%s",
            (long long)sum, worst ? worst->name : "", worst_pod ? worst_pod->meta.name : "",
            worst ? worst->restart_count : 0, worst && worst->waiting_reason[0] ? ": " : "",
            worst ? worst->waiting_reason : "");
}

/* ---- unready ---- */

/* What is to be remembered of a Pod: old is what was seen of it before, or NULL. */
static struct seen look(const struct sw_pod *pod, const struct seen *old, struct sw_arena *arena)
{
    const struct sw_condition *ready = sw_condition_get(&pod->conditions, "Ready");
    int64_t started_us = pod->started_us ? pod->started_us : pod->meta.created_us;
    struct seen seen = {
        .uid = sw_arena_strdup(arena, pod->meta.uid),
        .is_ready = ready && strcmp(ready->status, "True") == 0,
        .since_us = ready ? ready->last_transition_us : 0,
        .unready_us = old ? old->unready_us : 0,
    };
    bool has_turned = old && old->since_us && old->since_us != seen.since_us;

    seen.was_ready = seen.is_ready || (old && old->was_ready) || has_turned ||
                     seen.since_us > started_us + FIRST_STATUS_US;
    if (!has_turned || !old->was_ready)
        return seen;
    /* Ready, unready, ready; or unready, ready, unready: there was one between that nobody saw. */
    if (old->is_ready == seen.is_ready)
        seen.unready_us += SECOND_US;
    /* One that was seen has ended. */
    else if (seen.is_ready && seen.since_us > old->since_us)
        seen.unready_us += seen.since_us - old->since_us;
    return seen;
}

static int64_t unready_us(const struct seen *seen, int64_t wall_us)
{
    if (seen->is_ready || !seen->was_ready)
        return seen->unready_us;
    int64_t now_us = wall_us - seen->since_us;
    return seen->unready_us + (now_us > SECOND_US ? now_us : SECOND_US);
}

static const struct seen *find(const struct step_pods_memory *memory, size_t *from, const char *uid)
{
    while (*from < memory->count && strcmp(memory->at[*from].uid, uid) < 0)
        (*from)++;
    return *from < memory->count && strcmp(memory->at[*from].uid, uid) == 0 ? &memory->at[*from]
                                                                            : NULL;
}

static const char *seconds(struct sw_arena *arena, int64_t us)
{
    return sw_arena_printf(arena, "%llds", (long long)((us + SECOND_US - 1) / SECOND_US));
}

static void judge_unready(struct step_pods_memory *memory, const struct sw_pod *const *pods,
                          size_t count, uint64_t max_unready_ms, int64_t wall_us,
                          struct sw_arena *arena, struct step_check *check)
{
    struct sw_arena *kept = sw_arena_new(0);
    struct seen *all = SW_ARENA_ARRAY(kept, count, struct seen);
    const char *worst = "";
    int64_t most_us = 0;
    size_t from = 0;

    for (size_t i = 0; i < count; i++) {
        all[i] = look(pods[i], find(memory, &from, pods[i]->meta.uid), kept);
        int64_t us = unready_us(&all[i], wall_us);
        worst = us > most_us ? pods[i]->meta.name : worst;
        most_us = us > most_us ? us : most_us;
    }
    sw_arena_free(memory->arena);
    *memory = (struct step_pods_memory){kept, all, count};

    check->value = seconds(arena, most_us);
    check->has_passed = (uint64_t)most_us <= max_unready_ms * 1000;
    if (!check->has_passed)
        check->message =
            sw_arena_printf(arena, "the new Pod %s was unready for %s since it was first ready",
                            worst, check->value);
}

/* ---- both ---- */

static void begin(int32_t max_restarts, uint64_t max_unready_ms, int64_t wall_us,
                  struct sw_arena *arena, struct step_check checks[STEP_POD_CHECKS])
{
    checks[0] = (struct step_check){
        .name = "pods/maxRestarts",
        .range = sw_arena_printf(arena, "<= %d", max_restarts),
    };
    checks[1] = (struct step_check){
        .name = "pods/maxUnready",
        .range = sw_arena_printf(arena, "<= %gs", (double)max_unready_ms / 1000),
    };
    for (int i = 0; i < STEP_POD_CHECKS; i++) {
        checks[i].type = "pods";
        checks[i].value = "";
        checks[i].message = "";
        checks[i].at_us = wall_us;
    }
}

void step_pods_unseen(int32_t max_restarts, uint64_t max_unready_ms, int64_t wall_us,
                      const char *why, struct sw_arena *arena,
                      struct step_check ret_checks[STEP_POD_CHECKS])
{
    begin(max_restarts, max_unready_ms, wall_us, arena, ret_checks);
    for (int i = 0; i < STEP_POD_CHECKS; i++)
        ret_checks[i].message = sw_arena_strdup(arena, why);
}

void step_pods_judge(struct step_pods_memory *memory, const struct sw_object *const *pods,
                     size_t count, const char *owner_uid, int32_t max_restarts,
                     uint64_t max_unready_ms, int64_t wall_us, struct sw_arena *arena,
                     struct step_check ret_checks[STEP_POD_CHECKS])
{
    const struct sw_pod **chosen = SW_ARENA_ARRAY(arena, count ? count : 1, const struct sw_pod *);

    count = choose(pods, count, owner_uid, chosen);
    if (!count) {
        step_pods_unseen(max_restarts, max_unready_ms, wall_us, "there is no new Pod", arena,
                         ret_checks);
        return;
    }
    begin(max_restarts, max_unready_ms, wall_us, arena, ret_checks);
    judge_restarts(chosen, count, max_restarts, arena, &ret_checks[0]);
    judge_unready(memory, chosen, count, max_unready_ms, wall_us, arena, &ret_checks[1]);
}
