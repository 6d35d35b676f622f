/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a review is ours is replaced by what is stored, as in pausing's; the strategy is ours for
 * as long as one is saved. Where our answer comes again it stays as it is.
 */
#include "review.h"

#include <string.h>

#include "spec.h"
#include "target.h"

/* What of ours is on an object. Strings are never NULL. */
struct marks {
    const char *held_by, *released_by, *stepped_by, *saved;
};

/* One that is submitted or stored, the same for the two kinds. */
struct set {
    const struct sw_object *object;
    struct sw_hash128 template_hash;
    const struct sw_raw *strategy;
    struct marks marks;
    bool is_ours; /* a strategy is saved: what stands there is ours */
};

static const char *annotation(const struct sw_object *object, const char *key)
{
    const char *value = sw_annotation(object, key);

    return value ? value : "";
}

static void set_of(const struct sw_object *object, struct set *ret_set)
{
    bool is_daemon_set = object->kind == &sw_kind_daemon_set;

    *ret_set = (struct set){
        .object = object,
        .template_hash = is_daemon_set ? step_as_daemon_set(object)->template_hash
                                       : step_as_stateful_set(object)->template_hash,
        .strategy = is_daemon_set ? &step_as_daemon_set(object)->update_strategy
                                  : &step_as_stateful_set(object)->update_strategy,
        .marks =
            {
                .held_by = annotation(object, SW_HELD_BY),
                .released_by = annotation(object, SW_RELEASED_BY),
                .stepped_by = annotation(object, SW_STEPPED_BY),
                .saved = annotation(object, SW_SAVED),
            },
    };
    ret_set->is_ours = ret_set->marks.saved[0] && ret_set->marks.stepped_by[0];
}

/* ---- the patch ---- */

struct patch {
    struct sw_arena *arena;
    struct sw_json *operations;
    bool has_annotations;
};

static void operate(struct patch *patch, const char *op, const char *path, struct sw_json *value)
{
    struct sw_json *operation = sw_json_append_object(patch->operations);

    sw_json_set_string(operation, "op", op);
    sw_json_set_string(operation, "path", path);
    if (value)
        sw_json_set(operation, "value", value);
}

static void annotate(struct patch *patch, const char *path, const char *from, const char *to)
{
    if (strcmp(from, to) == 0)
        return;
    if (!to[0]) {
        operate(patch, "remove", path, NULL);
        return;
    }
    if (!patch->has_annotations) {
        operate(patch, "add", "/metadata/annotations", sw_json_object(patch->arena));
        patch->has_annotations = true;
    }
    operate(patch, "add", path, sw_json_string(patch->arena, to));
}

#define PATH(name) "/metadata/annotations/slipway.dev~1" name

static void annotate_all(struct patch *patch, const struct marks *from, const struct marks *to)
{
    annotate(patch, PATH("held-by"), from->held_by, to->held_by);
    annotate(patch, PATH("released-by"), from->released_by, to->released_by);
    annotate(patch, PATH("stepped-by"), from->stepped_by, to->stepped_by);
    annotate(patch, PATH("saved"), from->saved, to->saved);
}

/* ---- strategies ---- */

static struct sw_json *parsed(const struct sw_raw *raw, struct sw_arena *arena)
{
    struct sw_json *value;

    if (raw->text && !sw_json_parse(arena, raw->text, raw->len, &value, NULL) &&
        sw_json_type(value) == SW_JSON_OBJECT)
        return value;
    return sw_json_object(arena);
}

/* What a strategy becomes while we hold it: with a partition, or OnDelete. */
static struct sw_json *made_ours(bool is_daemon_set, struct sw_json *strategy, int32_t partition,
                                 struct sw_arena *arena)
{
    if (is_daemon_set)
        strategy = sw_json_object(arena);
    sw_json_set_string(strategy, "type", is_daemon_set ? "OnDelete" : "RollingUpdate");
    if (!is_daemon_set)
        sw_json_set_int(sw_json_set_object(strategy, "rollingUpdate"), "partition", partition);
    return strategy;
}

static bool is_daemon_set(const struct set *set)
{
    return set->object->kind == &sw_kind_daemon_set;
}

static struct sw_json *our_strategy(const struct set *submitted, int32_t partition,
                                    struct sw_arena *arena)
{
    return made_ours(is_daemon_set(submitted), parsed(submitted->strategy, arena), partition,
                     arena);
}

static const char *saved_text(struct sw_json *strategy, struct sw_arena *arena)
{
    struct sw_json *saved = sw_json_object(arena);

    sw_json_set(saved, "updateStrategy", strategy);
    return sw_json_dump(saved, arena, NULL);
}

static struct sw_json *made_type(const char *type, struct sw_arena *arena)
{
    struct sw_json *strategy = sw_json_object(arena);

    sw_json_set_string(strategy, "type", type);
    return strategy;
}

/* The user's strategy as somebody of us has saved it: what the submitted one carries, which may be
 * our answer of a moment ago, else what is stored. New; NULL: nobody has. */
static struct sw_json *own_before(const struct set *submitted, const struct set *stored,
                                  struct sw_arena *arena)
{
    const struct set *sets[] = {submitted, stored};

    for (size_t i = 0; i < 2; i++) {
        struct sw_json *saved = sets[i]->is_ours ? step_saved(sets[i]->object, arena) : NULL;
        if (sw_json_type(sw_json_get(saved, "updateStrategy")) == SW_JSON_OBJECT)
            return sw_json_set_object(saved, "updateStrategy");
    }
    return NULL;
}

/* Of a StatefulSet: what stands there as its partition is ours. */
static bool has_our_partition(const struct set *submitted, const struct set *stored,
                              int32_t partition)
{
    int32_t now = step_as_stateful_set(submitted->object)->partition;

    return now == partition ||
           (stored->is_ours && now == step_as_stateful_set(stored->object)->partition);
}

/* What the submitted strategy is without us. Who changes another part of it, be it in our own
 * answer or in what is stored, leaves in it what is ours: there its user's is meant. */
static struct sw_json *own_strategy(const struct set *submitted, const struct set *stored,
                                    const struct sw_json *before, int32_t partition,
                                    struct sw_arena *arena)
{
    struct sw_json *strategy = parsed(submitted->strategy, arena);
    const char *type = sw_json_get_string(before, "type");
    const struct sw_json *rolling_before = sw_json_get(before, "rollingUpdate");

    if (!before)
        return strategy;
    if (is_daemon_set(submitted)) {
        if (type && sw_json_get(strategy, "rollingUpdate"))
            sw_json_set_string(strategy, "type", type);
        return strategy;
    }
    if (!sw_json_get(sw_json_get(strategy, "rollingUpdate"), "partition") ||
        !has_our_partition(submitted, stored, partition))
        return strategy;
    if (type && strcmp(type, "RollingUpdate") != 0) /* has no more members than this */
        return made_type(type, arena);
    struct sw_json *rolling = sw_json_set_object(strategy, "rollingUpdate");
    sw_json_remove(rolling, "partition");
    if (sw_json_get(rolling_before, "partition"))
        sw_json_set_int(rolling, "partition", sw_json_get_int(rolling_before, "partition", 0));
    return strategy;
}

static bool is_same(const struct set *a, const struct set *b, struct sw_arena *arena)
{
    return sw_json_equal(parsed(a->strategy, arena), parsed(b->strategy, arena));
}

static void warn(struct sw_review_answer *answer, const char *text)
{
    size_t i = 0;

    while (i < sizeof answer->warnings / sizeof answer->warnings[0] - 1 && answer->warnings[i])
        i++;
    answer->warnings[i] = text;
}

static void put_strategy(struct patch *patch, const struct set *submitted, struct sw_json *strategy)
{
    if (!sw_json_equal(strategy, parsed(submitted->strategy, patch->arena)))
        operate(patch, "add", "/spec/updateStrategy", strategy);
}

/* ---- the table ---- */

static void hold(struct sw_arena *arena, const struct sw_opinion *opinion, const char *name,
                 struct marks *to, struct sw_review_answer *answer)
{
    to->held_by = opinion->owners[0] ? opinion->owners : step_owner(arena, name);
    to->released_by = "";
    to->stepped_by = name;
    warn(answer, sw_arena_printf(arena, "held by %s%s%s", to->held_by,
                                 opinion->words[0] ? ": " : "", opinion->words));
}

/* What slipway.dev/saved is to be. Where another webhook has changed something we are asked again:
 * our answer of a moment ago stays what it was, and what was changed in the strategy is its user's.
 */
static const char *saved_of(const struct set *submitted, const struct set *stored,
                            int32_t partition, struct sw_arena *arena)
{
    struct sw_json *before = own_before(submitted, stored, arena);
    struct sw_json *copy = own_before(submitted, stored, arena);

    if (submitted->is_ours && copy &&
        sw_json_equal(made_ours(is_daemon_set(submitted), copy, partition, arena),
                      parsed(submitted->strategy, arena)))
        return submitted->marks.saved;
    return saved_text(own_strategy(submitted, stored, before, partition, arena), arena);
}

/* One that we step already. */
static void review_ours(const struct sw_review *review, const struct set *submitted,
                        const struct set *stored, bool is_held, struct patch *patch,
                        struct marks *to, struct sw_review_answer *answer)
{
    int32_t partition = STEP_PARTITION_HELD;

    if (!is_held && submitted->object->kind == &sw_kind_stateful_set)
        partition = step_as_stateful_set(stored->object)->partition;
    struct sw_json *ours = our_strategy(submitted, partition, review->arena);
    if (!is_same(submitted, stored, review->arena)) {
        to->saved = saved_of(submitted, stored, partition, review->arena);
        warn(answer, sw_arena_printf(review->arena,
                                     "updateStrategy is that of SteppedRollout %s for now; yours "
                                     "is put back when it is done",
                                     stored->marks.stepped_by));
    }
    put_strategy(patch, submitted, ours);
}

void step_review_set(const struct sw_review *review, const struct sw_opinion *opinion,
                     const char *name, struct sw_review_answer *answer)
{
    struct sw_arena *arena = review->arena;
    struct patch patch = {
        .arena = arena,
        .operations = sw_json_array(arena),
        .has_annotations = review->has_annotations,
    };
    struct set submitted, stored = {.marks = {"", "", "", ""}};

    if (!review->object)
        return;
    set_of(review->object, &submitted);
    if (review->old)
        set_of(review->old, &stored);
    bool is_new = review->old && !sw_hash128_equal(submitted.template_hash, stored.template_hash);
    if (name && is_new && opinion->refusal) {
        answer->is_denied = true;
        answer->deny_message = opinion->refusal;
        return;
    }
    struct marks to = stored.marks;
    bool is_held = name && is_new && opinion->verdict != SW_VERDICT_FREE;
    if (is_held)
        hold(arena, opinion, name, &to, answer);
    if (stored.is_ours) {
        review_ours(review, &submitted, &stored, is_held, &patch, &to, answer);
    } else if (is_held) {
        struct sw_json *ours = our_strategy(&submitted, STEP_PARTITION_HELD, arena);
        to.saved = saved_of(&submitted, &stored, STEP_PARTITION_HELD, arena);
        put_strategy(&patch, &submitted, ours);
    } else if (submitted.is_ours) {
        /* A copy of one that was held, restored from a backup: its own strategy is in it. */
        struct sw_json *own = step_saved(submitted.object, arena);
        if (own && sw_json_type(sw_json_get(own, "updateStrategy")) == SW_JSON_OBJECT)
            put_strategy(&patch, &submitted, sw_json_set_object(own, "updateStrategy"));
    }
    if (name && opinion->warning)
        warn(answer, opinion->warning);
    annotate_all(&patch, &submitted.marks, &to);
    answer->patch = patch.operations;
}

/* ---- SteppedRollouts ---- */

/* All that the status says is of the target that it has: with another one it would take that for a
 * new template of the first. */
static bool has_another_target(const struct stepped *object, const struct stepped *old)
{
    return old && old->last_promoted_hash[0] &&
           (strcmp(object->target_kind, old->target_kind) != 0 ||
            strcmp(object->target_name, old->target_name) != 0);
}

void step_review_stepped(const struct sw_review *review, const char *older, bool has_target,
                         struct sw_review_answer *answer)
{
    const struct stepped *object = step_as_stepped(review->object);
    struct step_spec spec;
    const char *error, *ignored;

    /* What is being deleted, or was let in before we were asked, must be able to lose its
     * finalizer. */
    if (!object || object->meta.deleted_us)
        return;
    if (step_spec_parse(object, review->arena, &spec, &error)) {
        bool was_so = review->old &&
                      step_spec_parse(step_as_stepped(review->old), review->arena, &spec, &ignored);
        if (was_so) {
            warn(answer, error);
            return;
        }
        answer->is_denied = true;
        answer->deny_status = 422;
        answer->deny_message = error;
        return;
    }
    if (has_another_target(object, step_as_stepped(review->old))) {
        answer->is_denied = true;
        answer->deny_status = 422;
        answer->deny_message = "spec.targetRef: cannot change once its target was seen complete: "
                               "delete this SteppedRollout, and make another one";
        return;
    }
    if (older)
        warn(answer, sw_arena_printf(review->arena,
                                     "%s %s is stepped by SteppedRollout %s already, which is "
                                     "older: this one does nothing",
                                     object->target_kind, object->target_name, older));
    else if (!has_target)
        warn(answer, sw_arena_printf(review->arena, "there is no %s %s in this namespace yet",
                                     object->target_kind, object->target_name));
}
