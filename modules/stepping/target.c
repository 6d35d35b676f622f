/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the three kinds have in common.
 */
#include "target.h"

#include <errno.h>
#include <string.h>

/* ---- names ---- */

static const struct {
    const char *text;
    const struct sw_kind *kind;
} kinds[] = {
    [STEP_DEPLOYMENT] = {"Deployment", &sw_kind_deployment},
    [STEP_STATEFUL_SET] = {"StatefulSet", &sw_kind_stateful_set},
    [STEP_DAEMON_SET] = {"DaemonSet", &sw_kind_daemon_set},
};

bool step_target_kind_named(const char *api_version, const char *kind,
                            enum step_target_kind *ret_kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(api_version, "apps/v1") == 0 && strcmp(kind, kinds[i].text) == 0) {
            *ret_kind = (enum step_target_kind)i;
            return true;
        }
    return false;
}

const struct sw_kind *step_kind_of(enum step_target_kind kind)
{
    return kinds[kind].kind;
}

const char *step_owner(struct sw_arena *arena, const char *name)
{
    return sw_arena_printf(arena, STEP_POLICY "/%s", name);
}

bool step_list_has(const char *list, const char *owner)
{
    size_t wanted = strlen(owner);

    while (*list) {
        size_t len = strcspn(list, ",");
        if (len == wanted && memcmp(list, owner, len) == 0)
            return true;
        list += len + (list[len] == ',');
        list += strspn(list, " ");
    }
    return false;
}

/* ---- the target ---- */

void step_target_of(const struct sw_object *object, const char *name, struct sw_arena *arena,
                    struct step_target *ret_target)
{
    *ret_target = (struct step_target){
        .object = object,
        .others_words = "",
        .others_owners = "",
        .revisions_age_ms = UINT64_MAX,
        .revisions_version = "",
    };
    if (object->kind == &sw_kind_stateful_set)
        step_stateful_set_target(step_as_stateful_set(object), name, arena, ret_target);
    else if (object->kind == &sw_kind_daemon_set)
        step_daemon_set_target(step_as_daemon_set(object), name, arena, ret_target);
    else
        step_deployment_target(sw_as_deployment(object), name, arena, ret_target);
}

/* ---- what is saved ---- */

struct sw_json *step_saved(const struct sw_object *object, struct sw_arena *arena)
{
    const char *text = sw_annotation(object, SW_SAVED);
    struct sw_json *saved;

    if (!text || sw_json_parse(arena, text, strlen(text), &saved, NULL))
        return NULL;
    return sw_json_type(saved) == SW_JSON_OBJECT ? saved : NULL;
}

/* The strategy of the API server's own defaults, for one that cannot be known any more. */
static struct sw_json *default_strategy(struct sw_arena *arena)
{
    struct sw_json *strategy = sw_json_object(arena);

    sw_json_set_string(strategy, "type", "RollingUpdate");
    return strategy;
}

const char *step_saved_strategy(const struct sw_object *object, const struct sw_raw *strategy,
                                struct sw_arena *arena)
{
    struct sw_json *saved = step_saved(object, arena), *value;

    if (!saved || sw_json_type(sw_json_get(saved, "updateStrategy")) != SW_JSON_OBJECT) {
        bool is_lost = sw_annotation(object, SW_SAVED) != NULL;
        if (is_lost || !strategy->text ||
            sw_json_parse(arena, strategy->text, strategy->len, &value, NULL) ||
            sw_json_type(value) != SW_JSON_OBJECT)
            value = default_strategy(arena);
        saved = sw_json_object(arena);
        sw_json_set(saved, "updateStrategy", value);
    }
    return sw_json_dump(saved, arena, NULL);
}

struct sw_json *step_restored_strategy(const struct sw_object *object, struct sw_arena *arena)
{
    static const char *const members[] = {"partition", "maxUnavailable", "maxSurge"};
    struct sw_json *saved = step_saved(object, arena);

    if (!sw_annotation(object, SW_SAVED))
        return NULL;
    if (!saved || sw_json_type(sw_json_get(saved, "updateStrategy")) != SW_JSON_OBJECT) {
        saved = sw_json_object(arena);
        sw_json_set(saved, "updateStrategy", default_strategy(arena));
    }
    struct sw_json *strategy = sw_json_set_object(saved, "updateStrategy");
    const char *type = sw_json_get_string(strategy, "type");
    if (type && strcmp(type, "OnDelete") == 0) {
        sw_json_set(strategy, "rollingUpdate", NULL);
        return strategy;
    }
    struct sw_json *rolling = sw_json_set_object(strategy, "rollingUpdate");
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (!sw_json_get(rolling, members[i]))
            sw_json_set(rolling, members[i], NULL);
    return strategy;
}

/* ---- annotations of a grip ---- */

static void annotate(const struct sw_object *object, const char *key, const char *to,
                     struct sw_json **patch, struct sw_arena *arena)
{
    const char *from = sw_annotation(object, key);

    if (strcmp(from ? from : "", to ? to : "") == 0)
        return;
    if (!*patch)
        *patch = sw_json_object(arena);
    struct sw_json *annotations =
        sw_json_set_object(sw_json_set_object(*patch, "metadata"), "annotations");
    if (to && to[0])
        sw_json_set_string(annotations, key, to);
    else
        sw_json_set(annotations, key, NULL);
}

void step_grip_annotations(const struct sw_object *object, const struct step_grip *grip,
                           const char *saved_text, struct sw_json **patch, struct sw_arena *arena)
{
    const char *owner = step_owner(arena, grip->name);
    const char *held = NULL, *released = NULL;

    if (grip->type == STEP_GRIP_HELD)
        held = grip->others_owners[0] ? sw_arena_printf(arena, "%s,%s", owner, grip->others_owners)
                                      : owner;
    else if (grip->type == STEP_GRIP_RELEASED)
        released = owner;
    annotate(object, SW_HELD_BY, held, patch, arena);
    annotate(object, SW_RELEASED_BY, released, patch, arena);
    annotate(object, SW_STEPPED_BY, grip->has_mark ? grip->name : NULL, patch, arena);
    annotate(object, SW_SAVED, saved_text, patch, arena);
}

/* ---- templates ---- */

static struct sw_json *template_of_replica_set(struct sw_json *template)
{
    if (sw_json_type(template) != SW_JSON_OBJECT || !sw_json_get(template, "spec"))
        return NULL;
    struct sw_json *metadata = sw_json_set_object(template, "metadata");
    sw_json_remove(metadata, "creationTimestamp"); /* null; not every server writes it */
    sw_json_remove(sw_json_set_object(metadata, "labels"), "pod-template-hash");
    return template;
}

/* data: {"spec":{"template":{"$patch":"replace",...}}}, a strategic merge patch. */
static struct sw_json *template_of_revision(struct sw_json *data)
{
    const struct sw_json *found = sw_json_at(data, "spec", "template", NULL);

    if (sw_json_type(found) != SW_JSON_OBJECT || !sw_json_get(found, "spec"))
        return NULL;
    struct sw_json *template = sw_json_set_object(sw_json_set_object(data, "spec"), "template");
    sw_json_remove(template, "$patch");
    return template;
}

int step_template_patch(enum step_target_kind kind, const struct sw_raw *text,
                        struct sw_arena *arena, struct sw_json **ret_patch)
{
    struct sw_json *value;

    if (!text->text || sw_json_parse(arena, text->text, text->len, &value, NULL))
        return -EINVAL;
    struct sw_json *template =
        kind == STEP_DEPLOYMENT ? template_of_replica_set(value) : template_of_revision(value);
    if (!template)
        return -EINVAL;
    struct sw_json *patch = sw_json_array(arena);
    struct sw_json *operation = sw_json_append_object(patch);
    sw_json_set_string(operation, "op", "replace");
    sw_json_set_string(operation, "path", "/spec/template");
    sw_json_set(operation, "value", template);
    *ret_patch = patch;
    return 0;
}

bool step_template_is(const struct sw_raw *text, const struct sw_raw *wanted)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *a, *b;
    bool is = text->text && wanted->text &&
              !sw_json_parse(arena, text->text, text->len, &a, NULL) &&
              !sw_json_parse(arena, wanted->text, wanted->len, &b, NULL) &&
              template_of_replica_set(a) && template_of_replica_set(b) && sw_json_equal(a, b);

    sw_arena_free(arena);
    return is;
}
