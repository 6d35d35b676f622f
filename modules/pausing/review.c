/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admission table: what becomes of a Deployment that somebody submits. It is decided by the
 * stored object that the review carries, because the API server asks again when that has changed
 * meanwhile; a cached status could be older than the right to roll that it speaks of. The cache
 * only says who selects the object, and supplies the words.
 */
#include "hold.h"

#include <string.h>

#include <slipway/json.h>

/* Says of the row that applies what the object is to be; the annotations are as stored already. */
struct verdict {
    struct hold_state to;
    bool is_held_now; /* by this review, not before */
};

/* No policy has a say in it. But slipway.dev/hold, the one hold of somebody who selects nothing, is
 * a person's wish for this very Deployment: who asks for both gets both. */
static bool is_ignored(const struct sw_object *object, const struct sw_opinion *opinion)
{
    const char *value = sw_annotation(object, SW_IGNORE);
    bool is_wished = opinion->verdict != SW_VERDICT_FREE && !opinion->is_selected;

    return value && strcmp(value, "true") == 0 && !is_wished;
}

/* Who holds: those that say so, and those that have left a mark and are unknown to the cache, which
 * may be behind. */
static const char *holders(struct sw_arena *arena, const struct sw_opinion *opinion,
                           const struct hold_state *marked)
{
    bool is_held = opinion->verdict != SW_VERDICT_FREE;
    const char *unknown = hold_owners_of_marks(arena, marked, opinion->marks ? opinion->marks : "");

    return hold_list_union(arena, is_held ? opinion->owners : "", unknown);
}

static void hold_now(struct sw_arena *arena, const struct sw_opinion *opinion,
                     struct verdict *verdict)
{
    struct hold_state *to = &verdict->to;
    const char *marks = opinion->marks ? opinion->marks : "";

    to->held_by = holders(arena, opinion, to);
    /* The marks may know more than a cache that is behind: nothing is taken from them here. */
    for (size_t i = 0; i < HOLD_POLICIES; i++)
        to->marks[i] = hold_list_union(arena, to->marks[i],
                                       hold_names_of(arena, marks, hold_policies[i].name));
    to->is_paused = true;
    verdict->is_held_now = true;
}

/* Neither held nor released, and about to be stored unpaused: must it be held? */
static bool must_hold_resting(const struct sw_review *review, const struct sw_opinion *opinion,
                              const struct hold_state *marked)
{
    const struct sw_deployment *now = sw_as_deployment(review->object);
    const struct sw_deployment *old = sw_as_deployment(review->old);
    bool is_marked = hold_owners_of_marks(review->arena, marked, "")[0] != '\0';

    if (now->replicas == 0 && old->status_replicas == 0)
        return false;
    if (!holders(review->arena, opinion, marked)[0])
        return false;
    if (!opinion->is_selected && !is_marked)
        return true;
    if (!opinion->is_selected || opinion->rests_running)
        return old->is_paused || !sw_hash128_equal(now->template_hash, old->template_hash);
    return true;
}

static void decide(const struct sw_review *review, const struct sw_opinion *opinion,
                   const struct hold_state *stored, struct verdict *verdict)
{
    struct hold_state *to = &verdict->to;

    if (is_ignored(review->object, opinion))
        return;
    if (!review->old) {
        if (!to->is_paused && opinion->verdict != SW_VERDICT_FREE)
            hold_now(review->arena, opinion, verdict);
    } else if (stored->held_by[0]) {
        to->is_paused = true;
    } else if (to->is_paused) {
        /* a person's pause, or one that goes on */
    } else if (hold_is_released(stored)) {
        if (opinion->verdict != SW_VERDICT_FREE)
            hold_now(review->arena, opinion, verdict);
    } else if (must_hold_resting(review, opinion, stored)) {
        hold_now(review->arena, opinion, verdict);
    }
}

/* ---- the answer ---- */

static void add_operation(struct sw_json *patch, const char *op, const char *path,
                          struct sw_json *value)
{
    struct sw_json *operation = sw_json_append_object(patch);

    sw_json_set_string(operation, "op", op);
    sw_json_set_string(operation, "path", path);
    if (value)
        sw_json_set(operation, "value", value);
}

struct patch {
    struct sw_arena *arena;
    struct sw_json *operations;
    bool has_annotations;
};

static void make_annotations(struct patch *patch)
{
    if (patch->has_annotations)
        return;
    add_operation(patch->operations, "add", "/metadata/annotations", sw_json_object(patch->arena));
    patch->has_annotations = true;
}

static void patch_annotation(struct patch *patch, const char *key, const char *from, const char *to)
{
    const char *slash = strchr(key, '/');

    if (strcmp(from, to) == 0)
        return;
    const char *path = sw_arena_printf(patch->arena, "/metadata/annotations/%.*s~1%s",
                                       (int)(slash - key), key, slash + 1);
    if (!to[0]) {
        add_operation(patch->operations, "remove", path, NULL);
        return;
    }
    make_annotations(patch);
    add_operation(patch->operations, "add", path, sw_json_string(patch->arena, to));
}

/* What an arbiter keeps as it is; it builds on what is written before. */
static void append_patch(struct patch *patch, const struct sw_json *more)
{
    for (size_t i = 0; i < sw_json_size(more); i++) {
        const struct sw_json *operation = sw_json_element(more, i);
        size_t len;
        const char *text = sw_json_dump(operation, patch->arena, &len);
        struct sw_json *copy;
        make_annotations(patch);
        if (sw_json_parse(patch->arena, text, len, &copy, NULL) == 0)
            sw_json_append(patch->operations, copy);
    }
}

static struct sw_json *json_patch(const struct sw_review *review, const struct hold_state *from,
                                  const struct hold_state *to, const struct sw_json *more)
{
    struct patch patch = {
        .arena = review->arena,
        .operations = sw_json_array(review->arena),
        .has_annotations = review->has_annotations,
    };

    patch_annotation(&patch, SW_HELD_BY, from->held_by, to->held_by);
    patch_annotation(&patch, SW_RELEASED_BY, from->released_by, to->released_by);
    for (size_t i = 0; i < HOLD_POLICIES; i++)
        patch_annotation(&patch, hold_policies[i].annotation, from->marks[i], to->marks[i]);
    patch_annotation(&patch, SW_FENCE, from->fence, to->fence);
    patch_annotation(&patch, SW_SAVED, from->saved, to->saved);
    if (from->is_paused != to->is_paused)
        add_operation(patch.operations, "add", "/spec/paused",
                      sw_json_bool(review->arena, to->is_paused));
    append_patch(&patch, more);
    return patch.operations;
}

static const char *warning(const struct sw_review *review, const struct sw_opinion *opinion,
                           const struct hold_state *to)
{
    return sw_arena_printf(review->arena, "held by %s%s%s", to->held_by,
                           opinion->words[0] ? ": " : "", opinion->words);
}

/* What we write ourselves passes. But we never write a template, nor held-by on one that runs: such
 * a thing comes from another webhook that changed our write after we were asked about it. */
static void decide_ours(const struct sw_review *review, const struct sw_opinion *opinion,
                        const struct hold_state *submitted, struct verdict *verdict)
{
    const struct sw_deployment *now = sw_as_deployment(review->object);
    const struct sw_deployment *old = sw_as_deployment(review->old);

    struct sw_opinion strict = *opinion;

    /* The right that is stored may be what this write takes away. */
    if (strict.is_selected && strict.verdict == SW_VERDICT_FREE)
        strict.verdict = SW_VERDICT_HOLD;
    if (submitted->held_by[0])
        verdict->to.is_paused = true;
    else if (old && !submitted->is_paused && !hold_is_released(submitted) &&
             !is_ignored(review->object, opinion) &&
             !sw_hash128_equal(now->template_hash, old->template_hash) &&
             must_hold_resting(review, &strict, submitted))
        hold_now(review->arena, &strict, verdict);
}

void hold_review(const struct sw_review *review, const struct sw_opinion *opinion, bool is_by_us,
                 struct sw_review_answer *answer)
{
    const struct sw_deployment *now = sw_as_deployment(review->object);
    const struct sw_deployment *old = sw_as_deployment(review->old);
    struct hold_state submitted, stored;

    if (!now)
        return;
    hold_state_of(now, &submitted);
    if (is_by_us) {
        struct verdict ours = {.to = submitted};
        decide_ours(review, opinion, &submitted, &ours);
        /* What resumes for one policy is what another one may have to keep as it is meanwhile. */
        bool is_resumed = old && old->is_paused && !ours.to.is_paused;
        answer->patch =
            json_patch(review, &submitted, &ours.to, is_resumed ? opinion->patch : NULL);
        return;
    }
    bool is_asked = !is_ignored(review->object, opinion);
    if (is_asked && opinion->refusal) {
        answer->is_denied = true;
        answer->deny_message = opinion->refusal;
        return;
    }
    hold_state_of(old ? old : &(const struct sw_deployment){0}, &stored);

    /* Whatever was submitted of ours is replaced by what is stored: nobody else can grant or take a
     * right. */
    struct verdict verdict = {.to = stored};
    /* A backup or an older copy of one that we held, or our own answer of a moment ago, when
     * another webhook has changed something and the API server asks again: the pause in it is ours,
     * and counts as not submitted. */
    bool is_pause_ours = submitted.is_paused && submitted.held_by[0] && !stored.held_by[0];
    verdict.to.is_paused = submitted.is_paused && !is_pause_ours;

    decide(review, opinion, &stored, &verdict);
    /* Where nobody holds, such a copy does not resume what a person has paused. */
    if (is_pause_ours && stored.is_paused && !verdict.is_held_now)
        verdict.to.is_paused = true;
    answer->patch = json_patch(review, &submitted, &verdict.to, is_asked ? opinion->patch : NULL);
    if (is_asked)
        answer->warnings[1] = opinion->warning;

    bool is_template_new = !old || !sw_hash128_equal(now->template_hash, old->template_hash);
    bool is_undone =
        verdict.to.is_paused && (!submitted.is_paused || (old && !submitted.held_by[0]));
    if (verdict.to.held_by[0] && verdict.to.is_paused &&
        (verdict.is_held_now || is_template_new || is_undone))
        answer->warnings[0] = warning(review, opinion, &verdict.to);
}
