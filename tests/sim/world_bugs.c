/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deliberate bugs, made at the seams (the network and the way to the webhook), so that what ships
 * needs no hooks for them: each is what slipway would look like from outside if a line of it were
 * wrong. The checks must find every one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/memory.h>

#include "api.h"
#include "base/util.h"
#include "document.h"
#include "kind.h"
#include "patch.h"
#include "world_steps.h"

const char *const bug_names[BUGS] = {
    [NO_BUG] = "none",
    [BUG_RELEASE_WITHOUT_PRECONDITION] = "release-without-precondition",
    [BUG_CONFLICT_HIDDEN] = "conflict-hidden",
    [BUG_TAKE_BACK_AFTER_RECORD] = "take-back-after-record",
    [BUG_HOLD_NOT_WRITTEN] = "hold-not-written",
    [BUG_FREE_NOT_WRITTEN] = "free-not-written",
    [BUG_MARKS_NOT_WRITTEN] = "marks-not-written",
    [BUG_STATUS_NOT_WRITTEN] = "status-not-written",
    [BUG_REVIEW_SKIPPED] = "review-skipped",
    [BUG_REVIEW_PATCH_DROPPED] = "review-patch-dropped",
    [BUG_ANYBODY_IS_US] = "anybody-is-us",
    [BUG_DELETION_HIDDEN] = "deletion-hidden",
    [BUG_EVENTS_DROPPED] = "events-dropped",
    [BUG_RELEASED_UNASKED] = "released-unasked",
    [BUG_RECORD_WITHOUT_PRECONDITION] = "record-without-precondition",
    [BUG_FENCE_NOT_WRITTEN] = "fence-not-written",
    [BUG_TURN_NOT_WRITTEN] = "turn-not-written",
    [BUG_OWN_WRITE_STALE] = "own-write-stale",
    [BUG_RESIDUAL_AT_ONCE] = "residual-at-once",
    [BUG_STEP_HOLD_LEFT_OUT] = "step-hold-left-out",
    [BUG_STEP_STATUS_LATE] = "step-status-late",
    [BUG_STEP_CHECKS_SKIPPED] = "step-checks-skipped",
    [BUG_STEP_FINALIZER_LEFT] = "step-finalizer-left",
    [BUG_STEP_SAVED_NOT_PUT_BACK] = "step-saved-not-put-back",
};

/* ---- requests ---- */

static bool is_patch_of(const struct sw_sim_wire_request *request, const char *what)
{
    return strcmp(request->method, "PATCH") == 0 && strstr(request->target, what);
}

static void set_body(struct sw_sim_wire_request *request, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);

    sw_free(request->body);
    request->body = sw_strdup(text);
    request->body_len = strlen(text);
    free(text);
}

static bool is_null_annotation(const json_t *body, const char *key)
{
    return json_is_null(json_object_get(sw_sim_at(body, "metadata.annotations"), key));
}

/* What it is about; NULL where that is not there. */
static const struct sw_sim_object *object_of(const struct world *world,
                                             const struct sw_sim_wire_request *request)
{
    const char *from = strrchr(request->target, '/');
    char name[64];
    bool is_status = strncmp(from, "/status", 7) == 0;
    const struct sw_sim_kind *kind =
        strstr(request->target, "/deployments/") ? world->deployments : world->coordinations;

    if (strstr(request->target, "/steppedrollouts/"))
        kind = world->stepping->stepped;
    else if (strstr(request->target, "/statefulsets/"))
        kind = world->stepping->kinds[TARGET_STATEFUL_SET];
    else if (strstr(request->target, "/daemonsets/"))
        kind = world->stepping->kinds[TARGET_DAEMON_SET];

    if (is_status)
        while (*--from != '/')
            ;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(from + 1, "/?"), from + 1);
    return sw_sim_store_get(world->store, kind, NAMESPACE, name);
}

/* What the API server would answer, without doing it. */
static bool answered_not_done(struct world *world, const struct sw_sim_wire_request *request,
                              const json_t *body, int *ret_status, char **ret_body)
{
    const struct sw_sim_object *object = object_of(world, request);

    if (!object)
        return false;
    json_t *all = json_deep_copy(sw_sim_object_json(object));
    json_t *patch = json_deep_copy(body);
    json_object_del(json_object_get(patch, "metadata"), "resourceVersion");
    json_t *merged = sw_sim_merge_patch(all, patch);
    char version[32];
    snprintf(version, sizeof version, "%llu",
             (unsigned long long)SW_MAX(sw_sim_store_version(world->store), object->version + 1));
    json_object_set_new(json_object_get(merged, "metadata"), "resourceVersion",
                        json_string(version));
    char *text = json_dumps(merged, JSON_COMPACT);
    *ret_status = 200;
    *ret_body = sw_strdup(text);
    free(text);
    json_decref(patch);
    json_decref(merged);
    json_decref(all);
    return true;
}

struct version_search {
    uint64_t version;
    const struct sw_sim_object *found;
};

static int find_version(void *arg, const struct sw_sim_change *change)
{
    struct version_search *search = arg;

    if (change->object->version == search->version)
        search->found = change->object;
    else if (change->before && change->before->version == search->version)
        search->found = change->before;
    return search->found != NULL;
}

/* The object as the sender of the patch knows it: of the version that is its precondition. NULL
 * where nobody remembers that. */
static const struct sw_sim_object *object_as_known(const struct world *world,
                                                   const struct sw_sim_wire_request *request,
                                                   const json_t *body)
{
    const struct sw_sim_object *object = object_of(world, request);
    struct version_search search = {
        .version = strtoull(sw_sim_text_at(body, "metadata.resourceVersion"), NULL, 10)};

    if (object && object->version != search.version)
        sw_sim_store_changes(world->store, object->kind, search.version - 1, find_version, &search);
    return object && object->version == search.version ? object : search.found;
}

/* As if the line that sends it were missing: the sender knows no more than before. */
static bool is_left_out(struct world *world, const struct sw_sim_wire_request *request,
                        const json_t *body, int *ret_status, char **ret_body)
{
    const struct sw_sim_object *known = object_as_known(world, request, body);
    size_t len;

    if (!known)
        return false;
    *ret_status = 200;
    *ret_body = sw_strdup(sw_sim_object_text(known, &len));
    return true;
}

static bool is_fence_alone(const json_t *body)
{
    const json_t *annotations = sw_sim_at(body, "metadata.annotations");

    return json_object_get(annotations, "slipway.dev/fence") &&
           json_object_size(annotations) == 1 && !json_object_get(body, "spec");
}

/* ---- what is done later ---- */

struct late {
    struct late *next;
    struct world *world;
    struct sw_timer timer;
    char *target;
    json_t *body;
};

static void late_free(struct late *late)
{
    sw_timer_stop(&late->timer);
    sw_free(late->target);
    json_decref(late->body);
    sw_free(late);
}

static void on_late(struct sw_timer *timer)
{
    struct late *late = container_of(timer, struct late, timer);
    struct late **at = (struct late **)&late->world->bug_state;

    while (*at != late)
        at = &(*at)->next;
    *at = late->next;
    user_sends(late->world, OUR_NAME, "PATCH", late->target, "application/merge-patch+json",
               json_incref(late->body));
    late_free(late);
}

/* By itself, and without the precondition. */
static void do_later(struct world *world, const char *target, const json_t *body, uint64_t after_ms)
{
    struct late *late = SW_NEW(struct late);

    late->world = world;
    late->target = sw_strdup(target);
    late->body = json_deep_copy(body);
    json_object_del(json_object_get(late->body, "metadata"), "resourceVersion");
    sw_timer_init(&late->timer, world->loop, on_late);
    sw_timer_start(&late->timer, after_ms);
    late->next = world->bug_state;
    world->bug_state = late;
}

static void release_anybody(struct world *world)
{
    char target[160];
    int index = (int)world_random(world, 0, (uint64_t)world->case_.deployments - 1);
    json_t *body = json_pack("{s:{s:{s:s, s:n}}, s:{s:b}}", "metadata", "annotations",
                             "slipway.dev/released-by", "coordination/g0", "slipway.dev/held-by",
                             "spec", "paused", 0);

    snprintf(target, sizeof target,
             "/apis/apps/v1/namespaces/" NAMESPACE "/deployments/%s?fieldManager=slipway",
             deployment_name(index));
    do_later(world, target, body, 5);
    json_decref(body);
}

/* The release of one that nobody selects takes the others along that are held. */
static void release_all_left(struct world *world, const struct sw_sim_wire_request *request,
                             const json_t *body)
{
    const struct sw_sim_object *object = object_of(world, request);
    const char *owner = annotation_of(body, "slipway.dev/released-by");
    int index = object ? deployment_index(object->name) : -1;

    if (!owner[0] || index < 0 || !world->judge.members[index].unselected_ms)
        return;
    for (int i = 0; i < world->case_.deployments; i++) {
        const json_t *other = world_deployment(world, i);
        char target[160];
        if (i == index || !other || !world->judge.members[i].unselected_ms ||
            !list_has(annotation_of(other, "slipway.dev/held-by"), owner))
            continue;
        snprintf(target, sizeof target,
                 "/apis/apps/v1/namespaces/" NAMESPACE "/deployments/%s?fieldManager=slipway",
                 deployment_name(i));
        do_later(world, target, body, 5);
    }
}

/* ---- of stepping ---- */

static bool is_hold_of_stepping(const json_t *body)
{
    return strstr(annotation_of(body, "slipway.dev/held-by"), "stepping/");
}

static bool is_record_of_release(const struct sw_sim_wire_request *request, const json_t *body)
{
    const char *activity = sw_sim_text_at(body, "status.activity");

    return is_patch_of(request, "/steppedrollouts/") &&
           (strcmp(activity, "Advancing") == 0 || strcmp(activity, "Promoting") == 0);
}

static bool takes_finalizer(const struct sw_sim_wire_request *request, const json_t *body)
{
    const json_t *finalizers = sw_sim_at(body, "metadata.finalizers");

    return is_patch_of(request, "/steppedrollouts/") && json_is_array(finalizers) &&
           json_array_size(finalizers) == 0;
}

static void keep_what_is_saved(json_t *body)
{
    static const char *const keys[] = {"updateStrategy", "minReadySeconds",
                                       "progressDeadlineSeconds"};

    for (size_t i = 0; is_null_annotation(body, "slipway.dev/saved") && i < SW_ARRAY_SIZE(keys);
         i++)
        json_object_del(json_object_get(body, "spec"), keys[i]);
}

static bool change(struct world *world, struct sw_sim_wire_request *request, json_t *body,
                   int *ret_status, char **ret_body)
{
    bool is_deployment = is_patch_of(request, "/deployments/");
    bool is_status = is_patch_of(request, "/status");

    switch (world->case_.bug) {
    case BUG_RELEASE_WITHOUT_PRECONDITION:
        if (is_deployment)
            json_object_del(json_object_get(body, "metadata"), "resourceVersion");
        break;
    case BUG_TAKE_BACK_AFTER_RECORD:
        if (is_deployment && is_null_annotation(body, "slipway.dev/released-by") &&
            answered_not_done(world, request, body, ret_status, ret_body)) {
            do_later(world, request->target, body, 400);
            return false;
        }
        break;
    case BUG_HOLD_NOT_WRITTEN:
        if (is_deployment && annotation_of(body, "slipway.dev/held-by")[0] &&
            answered_not_done(world, request, body, ret_status, ret_body))
            return false;
        break;
    case BUG_FREE_NOT_WRITTEN:
        if (is_deployment && is_null_annotation(body, "slipway.dev/held-by") &&
            answered_not_done(world, request, body, ret_status, ret_body))
            return false;
        break;
    case BUG_MARKS_NOT_WRITTEN:
        json_object_del(sw_sim_at(body, "metadata.annotations"), "slipway.dev/coordinated-by");
        break;
    case BUG_RELEASED_UNASKED:
        if (is_status && world_random(world, 0, 3) == 0)
            release_anybody(world);
        return true;
    case BUG_RESIDUAL_AT_ONCE:
        if (is_deployment)
            release_all_left(world, request, body);
        return true;
    case BUG_RECORD_WITHOUT_PRECONDITION:
        if (is_status)
            json_object_del(json_object_get(body, "metadata"), "resourceVersion");
        break;
    case BUG_FENCE_NOT_WRITTEN:
        if (is_deployment && is_fence_alone(body) &&
            is_left_out(world, request, body, ret_status, ret_body))
            return false;
        break;
    case BUG_TURN_NOT_WRITTEN:
        json_object_del(json_object_get(body, "status"), "turn");
        break;
    case BUG_STATUS_NOT_WRITTEN:
        if (is_status && answered_not_done(world, request, body, ret_status, ret_body))
            return false;
        break;
    case BUG_STEP_HOLD_LEFT_OUT:
        if (is_hold_of_stepping(body) &&
            answered_not_done(world, request, body, ret_status, ret_body))
            return false;
        break;
    case BUG_STEP_STATUS_LATE:
        if (is_record_of_release(request, body) &&
            answered_not_done(world, request, body, ret_status, ret_body)) {
            do_later(world, request->target, body, 400);
            return false;
        }
        break;
    case BUG_STEP_FINALIZER_LEFT:
        if (takes_finalizer(request, body) &&
            answered_not_done(world, request, body, ret_status, ret_body))
            return false;
        break;
    case BUG_STEP_SAVED_NOT_PUT_BACK:
        keep_what_is_saved(body);
        break;
    default:
        return true;
    }
    set_body(request, body);
    return true;
}

bool bugs_on_request(struct world *world, struct replica *replica,
                     struct sw_sim_wire_request *request, int *ret_status, char **ret_body)
{
    (void)replica;
    if (world->case_.bug == NO_BUG || !request->body || strcmp(request->method, "PATCH") != 0)
        return true;
    json_t *body = json_loadb(request->body, request->body_len, 0, NULL);
    bool is_carried_out = change(world, request, body, ret_status, ret_body);
    json_decref(body);
    return is_carried_out;
}

/* ---- answers ---- */

static bool is_dropped(struct world *world, const char *line, size_t len)
{
    if (world->case_.bug == BUG_DELETION_HIDDEN)
        return memmem(line, len, "\"type\":\"DELETED\"", 16) != NULL;
    return memmem(line, len, "\"type\":\"MODIFIED\"", 17) && world_random(world, 0, 9) == 0;
}

static void drop_events(struct world *world, char *body, size_t *len)
{
    size_t kept = 0;

    for (size_t at = 0; at < *len;) {
        char *end = memchr(body + at, '\n', *len - at);
        size_t line = end ? (size_t)(end - body) + 1 - at : *len - at;
        if (!is_dropped(world, body + at, line)) {
            memmove(body + kept, body + at, line);
            kept += line;
        }
        at += line;
    }
    *len = kept;
}

static bool is_about_ours(const struct sw_sim_wire_request *request)
{
    return is_patch_of(request, "/deployments/") || is_patch_of(request, "/status");
}

/* The version of the write, and all else as the writer knew it before: what it has written itself
 * is not to be seen, and no event of the watch is newer. */
static void read_back_stale(const struct world *world, const struct sw_sim_wire_request *request,
                            char **body, size_t *len)
{
    json_t *patch = json_loadb(request->body, request->body_len, 0, NULL);
    json_t *written = json_loadb(*body, *len, 0, NULL);
    const struct sw_sim_object *known = object_as_known(world, request, patch);

    if (known) {
        json_t *stale = json_deep_copy(sw_sim_object_json(known));
        json_object_set(json_object_get(stale, "metadata"), "resourceVersion",
                        sw_sim_at(written, "metadata.resourceVersion"));
        char *text = json_dumps(stale, JSON_COMPACT);
        sw_free(*body);
        *body = sw_strdup(text);
        *len = strlen(text);
        free(text);
        json_decref(stale);
    }
    json_decref(written);
    json_decref(patch);
}

void bugs_on_answer(struct world *world, struct replica *replica,
                    const struct sw_sim_wire_request *request, int *status, char **body,
                    size_t *len)
{
    enum bug bug = world->case_.bug;

    (void)replica;
    if (request->is_watch) {
        if (bug == BUG_DELETION_HIDDEN || bug == BUG_EVENTS_DROPPED)
            drop_events(world, *body, len);
        return;
    }
    if (bug == BUG_OWN_WRITE_STALE && *status == 200 && request->body && is_about_ours(request)) {
        read_back_stale(world, request, body, len);
        return;
    }
    if (bug != BUG_CONFLICT_HIDDEN || *status != 409 || strcmp(request->method, "PATCH") != 0 ||
        strstr(request->target, "/leases"))
        return;
    json_t *patch = json_loadb(request->body, request->body_len, 0, NULL);
    char *told = NULL;
    if (answered_not_done(world, request, patch, status, &told)) {
        sw_free(*body);
        *body = told;
        *len = strlen(told);
    }
    json_decref(patch);
}

void bugs_done(struct world *world)
{
    while (world->bug_state) {
        struct late *late = world->bug_state;
        world->bug_state = late->next;
        late_free(late);
    }
}
