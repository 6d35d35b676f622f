/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     Deployment               the Deployment, then ReplicaSets
 *     StatefulSet, DaemonSet   the set, then ControllerRevisions, then Pods
 *
 * The target is read as well: its selector and template are not in the store.
 */
#include "look.h"

#include <stdlib.h>
#include <string.h>

#include <slipway/memory.h>
#include <slipway/read.h>
#include <slipway/selector.h>
#include <slipway/time.h>
#include <slipway/workloads.h>

#include "target.h"

#define REVISION "deployment.kubernetes.io/revision"
#define REVISION_HASH "controller-revision-hash"
#define TEMPLATE_HASH "pod-template-hash"
/* etcd takes no larger object. */
enum { TEMPLATE_LIMIT_BYTES = 1536 * 1024 };

/* ---- views ---- */

struct seen_target {
    struct sw_object meta;
    struct sw_raw selector;
    struct sw_raw template; /* Deployment */
    int64_t observed_generation;
    int32_t min_ready_seconds;
    const char *update_revision, *current_revision; /* StatefulSet */
    int32_t first_ordinal;
};

struct seen_replica_set {
    struct sw_object meta;
    struct sw_raw template;
    int32_t replicas, status_replicas, ready, available;
    int64_t observed_generation;
};

struct seen_revision {
    struct sw_object meta;
    int64_t revision;
};

struct seen_data {
    struct sw_object meta;
    struct sw_raw data;
};

#define TARGET(path, type, member, ...) \
    SW_BIND(path, type, struct seen_target, member, ##__VA_ARGS__)
#define REPLICA_SET(path, type, member, ...) \
    SW_BIND(path, type, struct seen_replica_set, member, ##__VA_ARGS__)

static const struct sw_bind target_fields[] = {
    TARGET("/spec/selector", SW_BIND_RAW, selector),
    TARGET("/spec/template", SW_BIND_RAW, template, .limit = TEMPLATE_LIMIT_BYTES),
    TARGET("/spec/minReadySeconds", SW_BIND_INT32, min_ready_seconds),
    TARGET("/status/observedGeneration", SW_BIND_INT64, observed_generation),
    TARGET("/status/updateRevision", SW_BIND_STRING, update_revision),
    TARGET("/status/currentRevision", SW_BIND_STRING, current_revision),
    TARGET("/spec/ordinals/start", SW_BIND_INT32, first_ordinal),
    SW_BIND_END,
};

static const struct sw_bind replica_set_fields[] = {
    REPLICA_SET("/spec/template", SW_BIND_RAW, template, .limit = TEMPLATE_LIMIT_BYTES),
    REPLICA_SET("/spec/replicas", SW_BIND_INT32, replicas, .otherwise = 1),
    REPLICA_SET("/status/replicas", SW_BIND_INT32, status_replicas),
    REPLICA_SET("/status/readyReplicas", SW_BIND_INT32, ready),
    REPLICA_SET("/status/availableReplicas", SW_BIND_INT32, available),
    REPLICA_SET("/status/observedGeneration", SW_BIND_INT64, observed_generation),
    SW_BIND_END,
};

static const struct sw_bind revision_fields[] = {
    SW_BIND("/revision", SW_BIND_INT64, struct seen_revision, revision),
    SW_BIND_END,
};

static const struct sw_bind data_fields[] = {
    SW_BIND("/data", SW_BIND_RAW, struct seen_data, data, .limit = TEMPLATE_LIMIT_BYTES),
    SW_BIND_END,
};

static const char *const replica_set_annotations[] = {REVISION, NULL};

#define APPS(kind_, plural_, struct_, fields_)                              \
    .group = "apps", .version = "v1", .kind = (kind_), .plural = (plural_), \
    .size = sizeof(struct struct_), .fields = (fields_)

static const struct sw_kind target_kinds[] = {
    [STEP_DEPLOYMENT] = {APPS("Deployment", "deployments", seen_target, target_fields)},
    [STEP_STATEFUL_SET] = {APPS("StatefulSet", "statefulsets", seen_target, target_fields)},
    [STEP_DAEMON_SET] = {APPS("DaemonSet", "daemonsets", seen_target, target_fields)},
};

static const struct sw_kind replica_set_kind = {
    APPS("ReplicaSet", "replicasets", seen_replica_set, replica_set_fields),
    .annotations = replica_set_annotations,
};

static const struct sw_kind revision_kind = {
    APPS("ControllerRevision", "controllerrevisions", seen_revision, revision_fields),
};

static const struct sw_kind data_kind = {
    APPS("ControllerRevision", "controllerrevisions", seen_data, data_fields),
};

const struct sw_kind *step_template_kind(enum step_target_kind kind)
{
    return kind == STEP_DEPLOYMENT ? &replica_set_kind : &data_kind;
}

const struct sw_raw *step_template_of(const struct sw_object *object)
{
    if (object->kind == &replica_set_kind)
        return &((const struct seen_replica_set *)(const void *)object)->template;
    return &((const struct seen_data *)(const void *)object)->data;
}

void step_look_declare(struct sw_instance *self)
{
    for (size_t i = 0; i < sizeof target_kinds / sizeof target_kinds[0]; i++)
        sw_read_declare(self, &target_kinds[i], false);
    sw_read_declare(self, &replica_set_kind, true);
    sw_read_declare(self, &revision_kind, true);
    sw_read_declare(self, &sw_kind_pod, true);
}

/* ---- one look ---- */

struct step_looking {
    struct step_looking *next, **link; /* of those under way */
    step_look_fn fn;                   /* NULL: cancelled */
    void *arg;
    enum step_target_kind kind;
    const char *namespace_, *target_name;
    char *selector;          /* text form */
    const char *newest_hash; /* what the Pods of the newest revision bear; NULL: none yet */
    int32_t min_ready_seconds;
    bool is_observed;
    struct sw_raw template;
    const char *update_revision;
    struct step_look *look; /* this struct is in its arena */
};

struct step_look *step_look_free(struct step_look *look)
{
    if (look)
        sw_arena_free(look->arena);
    return NULL;
}

static void unlink_looking(struct step_looking *looking)
{
    *looking->link = looking->next;
    if (looking->next)
        looking->next->link = looking->link;
}

static void finish(struct sw_instance *self, struct step_looking *looking, enum sw_outcome outcome,
                   const char *message)
{
    struct step_look *look = looking->look;
    step_look_fn fn = looking->fn;
    void *arg = looking->arg;

    unlink_looking(looking);
    looking->selector = sw_free(looking->selector);
    if (!fn || outcome != SW_OK) {
        if (fn)
            fn(self, arg, NULL, outcome, message);
        step_look_free(look);
        return;
    }
    look->came_ms = sw_time_ms(self);
    fn(self, arg, look, SW_OK, "");
}

static int compare_revisions(const void *a, const void *b)
{
    const struct step_revision *x = a, *y = b;

    if (x->is_newest != y->is_newest)
        return x->is_newest ? -1 : 1;
    if (x->revision != y->revision)
        return x->revision > y->revision ? -1 : 1;
    return x->created_us > y->created_us ? -1 : x->created_us < y->created_us;
}

static void sort(struct step_look *look)
{
    if (look->revision_count > 1)
        qsort(look->revisions, look->revision_count, sizeof *look->revisions, compare_revisions);
}

static void select_newest(struct step_looking *looking, const char *label, const char *value,
                          const char *owner_uid)
{
    struct step_look *look = looking->look;

    look->pod_selector = sw_arena_printf(look->arena, "%s%s%s=%s", looking->selector,
                                         looking->selector[0] ? "," : "", label, value);
    look->pod_owner_uid = sw_arena_strdup(look->arena, owner_uid);
}

/* ---- ReplicaSets ---- */

static void on_replica_sets(struct sw_instance *self, void *arg,
                            const struct sw_list_answer *answer)
{
    struct step_looking *looking = arg;
    struct step_look *look = looking->look;

    if (answer->outcome != SW_OK) {
        finish(self, looking, answer->outcome, answer->message);
        return;
    }
    look->revisions = SW_ARENA_ARRAY(look->arena, answer->count + 1, struct step_revision);
    for (size_t i = 0; i < answer->count; i++) {
        const struct seen_replica_set *set =
            (const struct seen_replica_set *)(const void *)answer->objects[i];
        const char *revision = sw_annotation(&set->meta, REVISION);
        const char *hash = sw_labels_get(&set->meta.labels, TEMPLATE_HASH);
        if (strcmp(set->meta.owner_uid, look->target_uid) != 0)
            continue;
        struct step_revision *one = &look->revisions[look->revision_count++];
        *one = (struct step_revision){
            .name = sw_arena_strdup(look->arena, set->meta.name),
            .resource_version = sw_arena_strdup(look->arena, set->meta.resource_version),
            .wanted = set->replicas,
            .pods = set->status_replicas,
            .ready = set->ready,
            .available = set->available,
            .created_us = set->meta.created_us,
            .revision = revision ? strtoll(revision, NULL, 10) : 0,
            .is_newest = step_template_is(&set->template, &looking->template),
            .is_observed = set->observed_generation >= set->meta.generation,
        };
        if (one->is_newest && hash)
            select_newest(looking, TEMPLATE_HASH, hash, set->meta.uid);
    }
    sort(look);
    finish(self, looking, SW_OK, "");
}

/* ---- Pods ---- */

static bool is_available(struct sw_instance *self, const struct sw_pod *pod,
                         int32_t min_ready_seconds)
{
    const struct sw_condition *ready = sw_condition_get(&pod->conditions, "Ready");

    return ready && strcmp(ready->status, "True") == 0 &&
           ready->last_transition_us + (int64_t)min_ready_seconds * 1000000 <=
               sw_time_wall_us(self);
}

static int32_t ordinal_of(const char *name)
{
    const char *dash = strrchr(name, '-');
    char *end;

    if (!dash || !dash[1])
        return -1;
    long ordinal = strtol(dash + 1, &end, 10);
    return *end || ordinal < 0 || ordinal > INT32_MAX ? -1 : (int32_t)ordinal;
}

/* A StatefulSet's Pods bear the name of their revision, a DaemonSet's its hash. */
static bool is_of(const struct step_revision *revision, const char *prefix, const char *hash)
{
    size_t len = strlen(prefix);

    return strcmp(revision->name, hash) == 0 ||
           (strncmp(revision->name, prefix, len) == 0 && revision->name[len] == '-' &&
            strcmp(revision->name + len + 1, hash) == 0);
}

static const char *count_pod(struct step_look *look, const char *target_name,
                             const struct step_pod *pod, const char *hash)
{
    for (size_t i = 0; i < look->revision_count; i++) {
        struct step_revision *revision = &look->revisions[i];
        if (!is_of(revision, target_name, hash))
            continue;
        revision->wanted++;
        revision->pods++;
        revision->ready += pod->is_ready && !pod->is_deleting;
        revision->available += pod->is_available && !pod->is_deleting;
        return revision->name;
    }
    return "";
}

static void on_pods(struct sw_instance *self, void *arg, const struct sw_list_answer *answer)
{
    struct step_looking *looking = arg;
    struct step_look *look = looking->look;

    if (answer->outcome != SW_OK) {
        finish(self, looking, answer->outcome, answer->message);
        return;
    }
    struct step_pod *pods = SW_ARENA_ARRAY(look->arena, answer->count + 1, struct step_pod);
    for (size_t i = 0; i < answer->count; i++) {
        const struct sw_pod *pod = (const struct sw_pod *)(const void *)answer->objects[i];
        const char *hash = sw_labels_get(&pod->meta.labels, REVISION_HASH);
        if (strcmp(pod->meta.owner_uid, look->target_uid) != 0)
            continue;
        struct step_pod *one = &pods[look->pod_count++];
        *one = (struct step_pod){
            .name = sw_arena_strdup(look->arena, pod->meta.name),
            .uid = sw_arena_strdup(look->arena, pod->meta.uid),
            .created_us = pod->meta.created_us,
            .ordinal = looking->kind == STEP_STATEFUL_SET ? ordinal_of(pod->meta.name) : -1,
            .is_updated = hash && looking->newest_hash && strcmp(hash, looking->newest_hash) == 0,
            .is_ready = sw_condition_is(&pod->conditions, "Ready", "True"),
            .is_available = is_available(self, pod, looking->min_ready_seconds),
            .is_deleting = pod->meta.deleted_us != 0,
        };
        one->revision = count_pod(look, looking->target_name, one, hash ? hash : "");
    }
    look->pods = pods;
    sort(look);
    finish(self, looking, SW_OK, "");
}

/* ---- ControllerRevisions ---- */

/* The newest one is what the status names; a DaemonSet has no such field, and its controller gives
 * the revision of the template that it has now the highest number, also when it is an old one. */
static void find_newest(struct step_looking *looking)
{
    struct step_look *look = looking->look;
    struct step_revision *newest = NULL;

    if (!looking->is_observed)
        return;
    for (size_t i = 0; i < look->revision_count; i++) {
        struct step_revision *one = &look->revisions[i];
        if (looking->kind == STEP_STATEFUL_SET) {
            if (strcmp(one->name, looking->update_revision) == 0)
                newest = one;
        } else if (!newest || one->revision > newest->revision) {
            newest = one;
        }
    }
    if (newest)
        newest->is_newest = true;
}

static void on_revisions(struct sw_instance *self, void *arg, const struct sw_list_answer *answer)
{
    struct step_looking *looking = arg;
    struct step_look *look = looking->look;

    if (answer->outcome != SW_OK) {
        finish(self, looking, answer->outcome, answer->message);
        return;
    }
    look->revisions = SW_ARENA_ARRAY(look->arena, answer->count + 1, struct step_revision);
    const char **hashes = SW_ARENA_ARRAY(look->arena, answer->count + 1, const char *);
    for (size_t i = 0; i < answer->count; i++) {
        const struct seen_revision *seen =
            (const struct seen_revision *)(const void *)answer->objects[i];
        const char *hash = sw_labels_get(&seen->meta.labels, REVISION_HASH);
        if (strcmp(seen->meta.owner_uid, look->target_uid) != 0)
            continue;
        hashes[look->revision_count] = sw_arena_strdup(look->arena, hash ? hash : "");
        look->revisions[look->revision_count++] = (struct step_revision){
            .name = sw_arena_strdup(look->arena, seen->meta.name),
            .resource_version = sw_arena_strdup(look->arena, seen->meta.resource_version),
            .created_us = seen->meta.created_us,
            .revision = seen->revision,
            .is_observed = true,
            .is_current = strcmp(seen->meta.name, look->current_revision) == 0,
        };
    }
    find_newest(looking);
    for (size_t i = 0; i < look->revision_count; i++)
        if (look->revisions[i].is_newest)
            looking->newest_hash =
                looking->kind == STEP_STATEFUL_SET ? look->revisions[i].name : hashes[i];
    if (looking->newest_hash)
        select_newest(looking, REVISION_HASH, looking->newest_hash, look->target_uid);
    if (sw_list_now(self, &sw_kind_pod, looking->namespace_, looking->selector, 0, on_pods,
                    looking))
        finish(self, looking, SW_REFUSED, "Pods could not be asked for");
}

/* ---- the target ---- */

static const char *selector_text(const struct sw_raw *selector, char **ret_text)
{
    struct sw_selector *parsed;
    static const char none[] = "it has no selector";
    char why[256] = "";

    if (!selector->text ||
        sw_selector_parse(selector->text, selector->len, &parsed, why, sizeof why))
        return none;
    *ret_text = sw_selector_text(parsed);
    sw_selector_free(parsed);
    return NULL;
}

static struct sw_raw keep(const struct sw_raw *raw, struct sw_arena *arena)
{
    if (!raw->text)
        return (struct sw_raw){NULL, 0};
    return (struct sw_raw){sw_arena_strndup(arena, raw->text, raw->len), raw->len};
}

static void on_target(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct step_looking *looking = arg;
    struct step_look *look = looking->look;

    if (answer->outcome != SW_OK) {
        finish(self, looking, answer->outcome, answer->message);
        return;
    }
    const struct seen_target *seen = (const struct seen_target *)(const void *)answer->object;
    const char *wrong = selector_text(&seen->selector, &looking->selector);
    if (wrong) {
        finish(self, looking, SW_REFUSED, wrong);
        return;
    }
    look->target_uid = sw_arena_strdup(look->arena, seen->meta.uid);
    look->target_version = sw_arena_strdup(look->arena, seen->meta.resource_version);
    look->target_generation = seen->meta.generation;
    look->current_revision = sw_arena_strdup(look->arena, seen->current_revision);
    look->first_ordinal = seen->first_ordinal;
    looking->min_ready_seconds = seen->min_ready_seconds;
    looking->is_observed = seen->observed_generation >= seen->meta.generation;
    looking->update_revision = sw_arena_strdup(look->arena, seen->update_revision);
    bool is_deployment = looking->kind == STEP_DEPLOYMENT;
    if (is_deployment)
        looking->template = keep(&seen->template, look->arena);
    if (sw_list_now(self, is_deployment ? &replica_set_kind : &revision_kind, looking->namespace_,
                    looking->selector, 0, is_deployment ? on_replica_sets : on_revisions, looking))
        finish(self, looking, SW_REFUSED, "its revisions could not be asked for");
}

struct step_looking *step_look_start(struct sw_instance *self, struct step_lookings *all,
                                     enum step_target_kind kind, const char *namespace_,
                                     const char *name, step_look_fn fn, void *arg)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct step_look *look = SW_ARENA_NEW(arena, struct step_look);
    struct step_looking *looking = SW_ARENA_NEW(arena, struct step_looking);

    *look = (struct step_look){
        .arena = arena,
        .at_ms = sw_time_ms(self),
        .target_uid = "",
        .target_version = "",
        .pod_selector = "",
        .pod_owner_uid = "",
        .current_revision = "",
    };
    *looking = (struct step_looking){
        .next = all->first,
        .link = &all->first,
        .fn = fn,
        .arg = arg,
        .kind = kind,
        .namespace_ = sw_arena_strdup(arena, namespace_),
        .target_name = sw_arena_strdup(arena, name),
        .update_revision = "",
        .look = look,
    };
    if (sw_read(self, &target_kinds[kind], namespace_, name, on_target, looking)) {
        sw_arena_free(arena);
        return NULL;
    }
    if (looking->next)
        looking->next->link = &looking->next;
    all->first = looking;
    return looking;
}

void step_look_cancel(struct step_looking *looking)
{
    if (looking)
        looking->fn = NULL;
}

void step_lookings_free(struct step_lookings *all)
{
    while (all->first) {
        struct step_looking *looking = all->first;
        unlink_looking(looking);
        sw_free(looking->selector);
        step_look_free(looking->look);
    }
}

/* ---- which Pods go ---- */

/* OrderedReady would not bring back a higher one beside a lower one that is not ready. */
static int compare_ordinals(const void *a, const void *b)
{
    const struct step_pod *x = *(const struct step_pod *const *)a;
    const struct step_pod *y = *(const struct step_pod *const *)b;

    if (x->is_available != y->is_available)
        return x->is_available ? 1 : -1;
    return (x->ordinal < y->ordinal) - (x->ordinal > y->ordinal);
}

static int compare_use(const void *a, const void *b)
{
    const struct step_pod *x = *(const struct step_pod *const *)a;
    const struct step_pod *y = *(const struct step_pod *const *)b;

    if (x->is_available != y->is_available)
        return x->is_available ? 1 : -1;
    return strcmp(x->name, y->name);
}

size_t step_look_most(const struct step_look *look, int32_t replicas, int32_t stop, size_t most)
{
    int32_t old = 0;

    for (size_t i = 0; i < look->pod_count; i++)
        old += !look->pods[i].is_updated && !look->pods[i].is_deleting;
    int32_t surplus = old - (replicas - stop);
    if (surplus <= 0)
        return 0;
    return (size_t)surplus < most ? (size_t)surplus : most;
}

static bool comes_back_as_it_is(const struct step_look *look, const struct step_pod *pod,
                                const struct step_choice *choice)
{
    return (int64_t)pod->ordinal - look->first_ordinal < choice->partition &&
           strcmp(pod->revision, look->current_revision) == 0;
}

static bool may_go(const struct step_look *look, const struct step_pod *pod,
                   const struct step_choice *choice)
{
    if (pod->is_deleting)
        return false;
    if (choice->type == STEP_BITE)
        return strcmp(pod->revision, choice->name) != 0;
    if (choice->type == STEP_CLEAR && (pod->is_ready || comes_back_as_it_is(look, pod, choice)))
        return false;
    return !pod->is_updated;
}

size_t step_look_choose(const struct step_look *look, const struct step_choice *choice,
                        const struct step_pod **ret_pods)
{
    struct sw_arena *arena = sw_arena_new(0);
    const struct step_pod **candidates =
        SW_ARENA_ARRAY(arena, look->pod_count + 1, const struct step_pod *);
    int32_t budget = choice->unavailable - choice->replicas;
    size_t count = 0, chosen = 0;

    for (size_t i = 0; i < look->pod_count; i++) {
        const struct step_pod *pod = &look->pods[i];
        budget += pod->is_available && !pod->is_deleting;
        if (may_go(look, pod, choice))
            candidates[count++] = pod;
    }
    if (count > 1)
        qsort(candidates, count, sizeof *candidates,
              choice->type == STEP_ADVANCE ? compare_use : compare_ordinals);
    for (size_t i = 0; i < count && chosen < choice->most; i++) {
        if (candidates[i]->is_available && budget-- <= 0)
            continue;
        ret_pods[chosen++] = candidates[i];
    }
    sw_arena_free(arena);
    return chosen;
}
