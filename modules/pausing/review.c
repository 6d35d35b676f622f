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

/* The mark names coordinations, a hold names owners. */
static const char *owners_of_marks(struct sw_arena *arena, const char *marks)
{
    const char *owners = "";

    while (*marks) {
        size_t len = strcspn(marks, ",");
        if (len > 0)
            owners = hold_list_union(arena, owners,
                                     sw_arena_printf(arena, "coordination/%.*s", (int)len, marks));
        marks += len + (marks[len] == ',');
    }
    return owners;
}

static void hold_now(struct sw_arena *arena, const struct sw_opinion *opinion,
                     struct verdict *verdict)
{
    struct hold_state *to = &verdict->to;
    const char *marks = opinion->marks ? opinion->marks : "";
    const char *owners = opinion->owners;

    /* The mark may know more than a cache that is behind: nothing is taken from it here. */
    to->coordinated_by = hold_list_union(arena, to->coordinated_by, marks);
    if (!owners[0])
        owners = owners_of_marks(arena, to->coordinated_by);
    to->held_by = hold_list_union(arena, owners, "");
    to->is_paused = true;
    verdict->is_held_now = true;
}

/* Neither held nor released, and about to be stored unpaused: must it be held? */
static bool must_hold_resting(const struct sw_deployment *now, const struct sw_deployment *old,
                              const struct sw_opinion *opinion, bool is_marked)
{
    if (now->replicas == 0 && old->status_replicas == 0)
        return false;
    if (!opinion->is_selected && !is_marked)
        return opinion->verdict != SW_VERDICT_FREE;
    if (!opinion->is_selected || opinion->rests_running)
        return old->is_paused || !sw_hash128_equal(now->template_hash, old->template_hash);
    return true;
}

static void decide(const struct sw_review *review, const struct sw_opinion *opinion,
                   const struct hold_state *stored, struct verdict *verdict)
{
    const struct sw_deployment *now = sw_as_deployment(review->object);
    const struct sw_deployment *old = sw_as_deployment(review->old);
    struct hold_state *to = &verdict->to;

    if (is_ignored(review->object, opinion))
        return;
    if (!old) {
        if (!to->is_paused && (opinion->is_selected || opinion->verdict != SW_VERDICT_FREE))
            hold_now(review->arena, opinion, verdict);
    } else if (stored->held_by[0]) {
        to->is_paused = true;
    } else if (to->is_paused) {
        /* a person's pause, or one that goes on */
    } else if (hold_is_released(stored)) {
        if (opinion->verdict != SW_VERDICT_FREE)
            hold_now(review->arena, opinion, verdict);
    } else if (must_hold_resting(now, old, opinion, stored->coordinated_by[0] != '\0')) {
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

static void patch_annotation(struct patch *patch, const char *path, const char *from,
                             const char *to)
{
    if (strcmp(from, to) == 0)
        return;
    if (!to[0]) {
        add_operation(patch->operations, "remove", path, NULL);
        return;
    }
    if (!patch->has_annotations) {
        add_operation(patch->operations, "add", "/metadata/annotations",
                      sw_json_object(patch->arena));
        patch->has_annotations = true;
    }
    add_operation(patch->operations, "add", path, sw_json_string(patch->arena, to));
}

#define ANNOTATION_PATH(name) "/metadata/annotations/slipway.dev~1" name

static struct sw_json *json_patch(const struct sw_review *review, const struct hold_state *from,
                                  const struct hold_state *to)
{
    struct patch patch = {
        .arena = review->arena,
        .operations = sw_json_array(review->arena),
        .has_annotations = review->has_annotations,
    };

    patch_annotation(&patch, ANNOTATION_PATH("held-by"), from->held_by, to->held_by);
    patch_annotation(&patch, ANNOTATION_PATH("released-by"), from->released_by, to->released_by);
    patch_annotation(&patch, ANNOTATION_PATH("coordinated-by"), from->coordinated_by,
                     to->coordinated_by);
    patch_annotation(&patch, ANNOTATION_PATH("fence"), from->fence, to->fence);
    if (from->is_paused != to->is_paused)
        add_operation(patch.operations, "add", "/spec/paused",
                      sw_json_bool(review->arena, to->is_paused));
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

    if (submitted->held_by[0])
        verdict->to.is_paused = true;
    else if (old && !submitted->is_paused && !hold_is_released(submitted) &&
             !is_ignored(review->object, opinion) &&
             !sw_hash128_equal(now->template_hash, old->template_hash) &&
             must_hold_resting(now, old, opinion, submitted->coordinated_by[0] != '\0'))
        hold_now(review->arena, opinion, verdict);
}

void hold_review(const struct sw_review *review, const struct sw_opinion *opinion, bool is_by_us,
                 struct sw_review_answer *answer)
{
    const struct sw_deployment *now = sw_as_deployment(review->object);
    const struct sw_deployment *old = sw_as_deployment(review->old);
    struct hold_state submitted, stored = {false, "", "", "", ""};

    if (!now)
        return;
    hold_state_of(now, &submitted);
    if (is_by_us) {
        struct verdict ours = {.to = submitted};
        decide_ours(review, opinion, &submitted, &ours);
        answer->patch = json_patch(review, &submitted, &ours.to);
        return;
    }
    if (old)
        hold_state_of(old, &stored);

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
    answer->patch = json_patch(review, &submitted, &verdict.to);

    bool is_template_new = !old || !sw_hash128_equal(now->template_hash, old->template_hash);
    bool is_undone =
        verdict.to.is_paused && (!submitted.is_paused || (old && !submitted.held_by[0]));
    if (verdict.to.held_by[0] && verdict.to.is_paused &&
        (verdict.is_held_now || is_template_new || is_undone))
        answer->warnings[0] = warning(review, opinion, &verdict.to);
}
