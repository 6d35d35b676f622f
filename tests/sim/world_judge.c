/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges every change of the store, from the cluster's side alone: it believes nothing of what
 * slipway writes down about turns. A Deployment rolls from when its status says so, or from when a
 * ReplicaSet of another template than the one that ran gets its first Pods, until it is seen at
 * rest (the same rules as tests/e2e/harness/judge.py). Besides, the sharper thing that slipway
 * promises: nobody is given the right to roll while others of the group bear it.
 *
 * Excused is what the specification (coordination, section 8) names: what went past the webhook,
 * and what came to be selected while it ran, or before a replica knew of the group.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/memory.h>

#include "base/util.h"
#include "document.h"
#include "kind.h"
#include "world_steps.h"

#define TOO_LONG_MS 15000 /* for more than may to roll on, whoever began it */

/* Six Deployments that are changed every 5 ms make about a hundred writes a second, for a short
 * time. */
#define BUSY_MS 20000
#define BUSY_WRITES 1000

/* ---- names ---- */

static int index_of(const char *name, char letter, int max)
{
    if (name[0] != letter || name[1] < '0' || name[1] > '9' || name[2])
        return -1;
    return name[1] - '0' < max ? name[1] - '0' : -1;
}

int deployment_index(const char *name)
{
    return index_of(name, 'd', DEPLOYMENTS_MAX);
}

int group_index(const char *name)
{
    return index_of(name, 'g', GROUPS_MAX);
}

const char *deployment_name(int index)
{
    static const char *const names[DEPLOYMENTS_MAX] = {"d0", "d1", "d2", "d3", "d4", "d5"};

    return names[index];
}

const char *group_name(int index)
{
    static const char *const names[GROUPS_MAX] = {"g0", "g1", "g2"};

    return names[index];
}

/* ---- objects ---- */

static const json_t *stored(const struct world *world, const struct sw_sim_kind *kind,
                            const char *name)
{
    const struct sw_sim_object *object =
        kind ? sw_sim_store_get(world->store, kind, NAMESPACE, name) : NULL;

    return object ? sw_sim_object_json(object) : NULL;
}

const json_t *world_deployment(const struct world *world, int index)
{
    return stored(world, world->deployments, deployment_name(index));
}

const json_t *world_group(const struct world *world, int index)
{
    return stored(world, world->coordinations, group_name(index));
}

const char *annotation_of(const json_t *object, const char *key)
{
    const char *text =
        json_string_value(json_object_get(sw_sim_at(object, "metadata.annotations"), key));

    return text ? text : "";
}

bool list_has(const char *list, const char *entry)
{
    size_t len = strlen(entry);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, entry, len) == 0 && (at[len] == ',' || !at[len]))
            return true;
    }
    return false;
}

const char *condition_of(const json_t *object, const char *type, const char *member)
{
    size_t i;
    json_t *condition;

    json_array_foreach(sw_sim_at(object, "status.conditions"), i, condition)
    {
        if (strcmp(sw_sim_text_at(condition, "type"), type) == 0)
            return sw_sim_text_at(condition, member);
    }
    return "";
}

/* The groups of this world select by matchLabels, or everything. */
static bool selector_matches(const json_t *selector, const json_t *labels)
{
    const char *key;
    json_t *value;

    if (!json_is_object(selector) || json_object_get(selector, "matchExpressions"))
        return false; /* the only expression that is used here is one that nobody accepts */
    json_object_foreach(json_object_get(selector, "matchLabels"), key, value)
    {
        const char *have = json_string_value(json_object_get(labels, key));
        if (!have || strcmp(have, json_string_value(value)) != 0)
            return false;
    }
    return true;
}

bool judge_selects(const json_t *coordination, const json_t *deployment)
{
    return strcmp(annotation_of(deployment, "slipway.dev/ignore"), "true") != 0 &&
           selector_matches(sw_sim_at(coordination, "spec.labelSelector"),
                            sw_sim_at(deployment, "metadata.labels"));
}

static int64_t wanted(const json_t *deployment)
{
    return sw_sim_int_at(deployment, "spec.replicas", 1);
}

static int64_t number(const json_t *deployment, const char *path)
{
    return sw_sim_int_at(deployment, path, 0);
}

bool judge_is_observed(const json_t *deployment)
{
    return number(deployment, "status.observedGeneration") >=
           number(deployment, "metadata.generation");
}

bool judge_is_complete(const json_t *d)
{
    int64_t want = wanted(d);

    return judge_is_observed(d) && number(d, "status.updatedReplicas") == want &&
           number(d, "status.replicas") == want && number(d, "status.availableReplicas") == want;
}

bool judge_is_gone(const json_t *deployment)
{
    return sw_sim_at(deployment, "metadata.deletionTimestamp") != NULL;
}

static bool is_rolling(const json_t *d)
{
    if (sw_sim_bool_at(d, "spec.paused") || !judge_is_observed(d) || judge_is_gone(d))
        return false;
    if (number(d, "status.replicas") > number(d, "status.updatedReplicas"))
        return true;
    if (wanted(d) == 0 || judge_is_complete(d))
        return false;
    const char *status = condition_of(d, "Progressing", "status");
    if (!status[0])
        return number(d, "status.updatedReplicas") < wanted(d);
    if (strcmp(sw_sim_text_at(d, "spec.strategy.type"), "Recreate") == 0 &&
        number(d, "status.replicas") == 0)
        return true;
    return strcmp(status, "Unknown") != 0 &&
           strcmp(condition_of(d, "Progressing", "reason"), "NewReplicaSetAvailable") != 0;
}

/* ---- excuses ---- */

void judge_excuse(struct world *world, int index)
{
    const json_t *d = world_deployment(world, index);
    struct member *member = &world->judge.members[index];

    member->is_excused = true;
    member->excused_generation = d ? number(d, "metadata.generation") : 0;
    world_say(world, "judge: %s is excused", deployment_name(index));
}

static bool may_have_begun(const struct world *world, int index)
{
    const json_t *d = world_deployment(world, index);

    return world->judge.members[index].is_rolling ||
           (d && (!sw_sim_bool_at(d, "spec.paused") || !judge_is_observed(d)));
}

/* All that rolls, or may have begun to, when this coordination came to select it. */
static void excuse_newly_selected(struct world *world, const json_t *before, const json_t *group)
{
    for (int i = 0; i < world->case_.deployments; i++) {
        const json_t *d = world_deployment(world, i);
        if (d && judge_selects(group, d) && !(before && judge_selects(before, d)) &&
            may_have_begun(world, i))
            judge_excuse(world, i);
    }
}

/* ---- how many may ---- */

static int count_active(const json_t *group)
{
    return (int)json_array_size(sw_sim_at(group, "status.activeDeployments"));
}

int judge_max_of(const json_t *group)
{
    return (int)sw_sim_int_at(group, "spec.maxActive", 1);
}

bool judge_bears_right(const json_t *d)
{
    return annotation_of(d, "slipway.dev/released-by")[0];
}

int judge_most_allowed(struct world *world, int g)
{
    const json_t *group = world_group(world, g);
    struct group *known = &world->judge.groups[g];
    int bearers = 0, max = judge_max_of(group);

    for (int i = 0; i < world->case_.deployments; i++) {
        const json_t *d = world_deployment(world, i);
        bearers += d && judge_selects(group, d) &&
                   (judge_bears_right(d) || world->judge.members[i].is_rolling);
    }
    if (known->max_checked < max || (bearers <= max && count_active(group) <= max))
        known->max_checked = max;
    return known->max_checked;
}

/* ---- who rolls ---- */

/* but_excused: nobody can help it that one is released beside who has just slipped through. */
static const char *others_that_roll(struct world *world, const json_t *group, int index,
                                    bool but_excused, int *ret_count)
{
    static char text[256];
    int len = 0;

    *ret_count = 0;
    text[0] = '\0';
    for (int i = 0; i < world->case_.deployments; i++) {
        const struct member *member = &world->judge.members[i];
        const json_t *d = world_deployment(world, i);
        if (i == index || !d || !member->is_rolling || !judge_selects(group, d) ||
            (but_excused && member->is_excused))
            continue;
        ++*ret_count;
        len += snprintf(text + len, sizeof text - (size_t)len, " %s", deployment_name(i));
    }
    return text;
}

static void begins(struct world *world, int index)
{
    struct member *member = &world->judge.members[index];
    const json_t *d = world_deployment(world, index);

    if (member->is_rolling)
        return;
    member->is_rolling = true;
    world->judge.rollouts++;
    world_say(world, "judge: %s rolls", deployment_name(index));
    for (int g = 0; d && g < world->case_.groups && !member->is_excused; g++) {
        const json_t *group = world_group(world, g);
        int others;
        if (!group || !judge_selects(group, d))
            continue;
        const char *names = others_that_roll(world, group, index, true, &others);
        if (others + 1 > judge_most_allowed(world, g))
            world_fail(world, "of %s roll at once:%s and %s, which has %s right", group_name(g),
                       names, deployment_name(index), judge_bears_right(d) ? "the" : "no");
    }
}

static void rests(struct world *world, int index, const json_t *d)
{
    struct member *member = &world->judge.members[index];

    if (member->is_rolling)
        world_say(world, "judge: %s rests", deployment_name(index));
    member->is_rolling = false;
    if (member->is_excused && number(d, "metadata.generation") > member->excused_generation)
        member->is_excused = false;
}

static void forget(struct world *world, int index)
{
    struct member *member = &world->judge.members[index];

    sw_free(member->uid);
    *member = (struct member){0};
}

/* ---- ReplicaSets ---- */

struct size {
    struct size *next;
    char hash[32];
    int64_t replicas;
};

struct owner {
    struct owner *next;
    char uid[64];
    char template_hash[32]; /* of what runs */
    int64_t revision;
    struct size *sizes;
};

static struct owner *owner_of(struct world *world, const json_t *replicaset)
{
    size_t i;
    json_t *reference;

    json_array_foreach(sw_sim_at(replicaset, "metadata.ownerReferences"), i, reference)
    {
        const char *uid = sw_sim_text_at(reference, "uid");
        if (!sw_sim_bool_at(reference, "controller"))
            continue;
        for (struct owner *owner = world->judge.owners; owner; owner = owner->next)
            if (strcmp(owner->uid, uid) == 0)
                return owner;
        struct owner *owner = SW_NEW(struct owner);
        snprintf(owner->uid, sizeof owner->uid, "%s", uid);
        owner->next = world->judge.owners;
        world->judge.owners = owner;
        return owner;
    }
    return NULL;
}

static struct size *size_of(struct owner *owner, const char *hash)
{
    for (struct size *size = owner->sizes; size; size = size->next)
        if (strcmp(size->hash, hash) == 0)
            return size;
    struct size *size = SW_NEW(struct size);
    snprintf(size->hash, sizeof size->hash, "%s", hash);
    size->next = owner->sizes;
    owner->sizes = size;
    return size;
}

static bool has_any_size(const struct owner *owner)
{
    for (const struct size *size = owner->sizes; size; size = size->next)
        if (size->replicas > 0)
            return true;
    return false;
}

static int member_of(const struct world *world, const struct owner *owner)
{
    for (int i = 0; i < world->case_.deployments; i++)
        if (world->judge.members[i].uid && strcmp(world->judge.members[i].uid, owner->uid) == 0)
            return i;
    return -1;
}

static void see_replicaset(struct world *world, const json_t *replicaset, bool is_deleted)
{
    struct owner *owner = owner_of(world, replicaset);

    if (!owner)
        return;
    const char *hash =
        sw_sim_text_at(sw_sim_at(replicaset, "metadata.labels"), "pod-template-hash");
    int64_t revision = atoll(annotation_of(replicaset, "deployment.kubernetes.io/revision"));
    struct size *size = size_of(owner, hash);
    int64_t before = size->replicas;
    bool is_newest = revision > owner->revision;

    size->replicas = is_deleted ? 0 : wanted(replicaset);
    owner->revision = SW_MAX(owner->revision, revision);
    /* A new template while nothing ran: nothing rolls when it is scaled up. */
    if (is_newest && !has_any_size(owner))
        snprintf(owner->template_hash, sizeof owner->template_hash, "%s", hash);
    if (size->replicas <= before || strcmp(owner->template_hash, hash) == 0)
        return;
    snprintf(owner->template_hash, sizeof owner->template_hash, "%s", hash);
    int index = member_of(world, owner);
    if (before == 0 && index >= 0)
        begins(world, index);
}

/* ---- changes ---- */

/* It came to be selected by this very change. */
static bool is_newly_selected(const struct world *world, const json_t *before, const json_t *d)
{
    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *group = world_group(world, g);
        if (group && judge_selects(group, d) && before && !judge_selects(group, before))
            return true;
    }
    return false;
}

static void see_deployment(struct world *world, const struct sw_sim_change *change)
{
    const json_t *d = sw_sim_object_json(change->object);
    int index = deployment_index(change->object->name);
    struct member *member = &world->judge.members[index];

    if (change->type == SW_SIM_DELETED) {
        forget(world, index);
        return;
    }
    if (!member->uid || strcmp(member->uid, change->object->uid) != 0) {
        bool is_excused = member->is_excused; /* by the review of its creation */
        bool is_forged = member->is_forged;
        forget(world, index);
        member->uid = sw_strdup(change->object->uid);
        member->is_excused = is_excused;
        member->is_forged = is_forged;
    }
    const json_t *before = change->before ? sw_sim_object_json(change->before) : NULL;
    if (before && is_newly_selected(world, before, d) && may_have_begun(world, index))
        judge_excuse(world, index);
    judge_look_at_selection(world, index);
    judge_see_right(world, index, before, d);
    if (!judge_is_observed(d))
        return;
    if (is_rolling(d))
        begins(world, index);
    else
        rests(world, index, d);
}

static void look_at_selections(struct world *world)
{
    for (int i = 0; i < world->case_.deployments; i++)
        judge_look_at_selection(world, i);
}

static void see_group(struct world *world, const struct sw_sim_change *change)
{
    const json_t *group = sw_sim_object_json(change->object);
    const json_t *before = change->before ? sw_sim_object_json(change->before) : NULL;
    int g = group_index(change->object->name);
    struct group *known = &world->judge.groups[g];

    if (change->type == SW_SIM_DELETED) {
        *known = (struct group){.last_max = judge_max_of(group)};
        look_at_selections(world);
        return;
    }
    known->last_max = judge_max_of(group);
    bool is_status =
        before && json_equal(json_object_get(before, "spec"), json_object_get(group, "spec"));
    if (!is_status) {
        if (before)
            known->max_checked = SW_MAX(known->max_checked, judge_max_of(before));
        excuse_newly_selected(world, before, group);
        look_at_selections(world);
        return;
    }
    if (count_active(group) > count_active(before))
        world->judge.records++;
    if (count_active(group) > judge_most_allowed(world, g) &&
        count_active(group) > count_active(before))
        world_fail(world, "%s records %d as active", group_name(g), count_active(group));
}

static uint64_t hash_on(uint64_t hash, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) /* FNV-1a */
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void tell(const struct world *world, const struct sw_sim_change *change)
{
    static const char *const verbs[] = {"added", "modified", "deleted"};
    const json_t *o = sw_sim_object_json(change->object);
    const char *name = change->object->name;

    if (change->object->kind == world->deployments) {
        world_say(
            world,
            "store: %llu %s %s: paused %d want %lld generation %lld/%lld replicas %lld "
            "updated %lld available %lld, held '%s' released '%s' marks '%s' fence '%s', "
            "Progressing %s",
            (unsigned long long)change->version, name, verbs[change->type],
            sw_sim_bool_at(o, "spec.paused"), (long long)wanted(o),
            (long long)number(o, "status.observedGeneration"),
            (long long)number(o, "metadata.generation"), (long long)number(o, "status.replicas"),
            (long long)number(o, "status.updatedReplicas"),
            (long long)number(o, "status.availableReplicas"),
            annotation_of(o, "slipway.dev/held-by"), annotation_of(o, "slipway.dev/released-by"),
            annotation_of(o, "slipway.dev/coordinated-by"), annotation_of(o, "slipway.dev/fence"),
            condition_of(o, "Progressing", "reason"));
    } else if (change->object->kind == world->coordinations) {
        char *active = json_dumps(sw_sim_at(o, "status.activeDeployments"), JSON_ENCODE_ANY);
        world_say(world, "store: %llu %s %s: active %s turn %lld pending %lld Ready %s %s",
                  (unsigned long long)change->version, name, verbs[change->type],
                  active ? active : "none", (long long)number(o, "status.turn"),
                  (long long)number(o, "status.pending"), condition_of(o, "Ready", "status"),
                  condition_of(o, "Degraded", "reason"));
        free(active);
    }
}

static void on_change(struct sw_sim_store_watcher *watcher, const struct sw_sim_change *change)
{
    struct world *world = container_of(watcher, struct world, judge.watcher);
    const struct sw_sim_object *object = change->object;
    char head[96];
    size_t len;

    snprintf(head, sizeof head, "%llu %d", (unsigned long long)change->version, change->type);
    world->judge.hash = hash_on(world->judge.hash, head, strlen(head));
    const char *text = sw_sim_object_text(object, &len);
    world->judge.hash = hash_on(world->judge.hash, text, len);
    if (object->kind != world->leases)
        world->judge.changes++;
    if (strcmp(object->namespace_, NAMESPACE) != 0)
        return;
    if (world->is_loud)
        tell(world, change);
    if (object->kind == world->deployments && deployment_index(object->name) >= 0)
        see_deployment(world, change);
    else if (object->kind == world->coordinations && group_index(object->name) >= 0)
        see_group(world, change);
    else if (object->kind == world->replicasets)
        see_replicaset(world, sw_sim_object_json(object), change->type == SW_SIM_DELETED);
    if (world->stepping)
        steps_see(world, change);
}

/* ---- what lasts too long ---- */

/* Without a lease several lead for good, and contradict each other for as long as one of them sees
 * the past: a write after each of the other's. That is safe, and not meant to be run. */
static bool may_quarrel(const struct world *world)
{
    return world->case_.replicas > 1 && (world->case_.faults & FAULT_NO_LEASE);
}

static void look_for_busy_loop(struct world *world)
{
    if (world->now_ms - world->looked_ms < BUSY_MS)
        return;
    if (world->writes_by_us - world->looked_writes > BUSY_WRITES && !may_quarrel(world))
        world_fail(world, "%llu writes in %d s: a busy loop",
                   (unsigned long long)(world->writes_by_us - world->looked_writes),
                   BUSY_MS / 1000);
    world->looked_ms = world->now_ms;
    world->looked_writes = world->writes_by_us;
}

/* Those who were excused, or came together by a change of labels, must not go on beside each
 * other; unless slipway cannot do anything about it. */
void judge_look(struct world *world)
{
    look_for_busy_loop(world);
    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *group = world_group(world, g);
        struct group *known = &world->judge.groups[g];
        int count = 0;
        if (group)
            others_that_roll(world, group, -1, false, &count);
        if (!group || count <= judge_most_allowed(world, g) || world->controllers_down_until_ms) {
            known->excess_since_ms = 0;
        } else if (!known->excess_since_ms) {
            known->excess_since_ms = world->now_ms;
        } else if (world->is_ending && world->now_ms - known->excess_since_ms > TOO_LONG_MS) {
            int others;
            world_fail(world, "%s: roll on beside each other:%s", group_name(g),
                       others_that_roll(world, group, -1, false, &others));
        }
    }
}

void judge_begin(struct world *world)
{
    world->judge.hash = UINT64_C(0xcbf29ce484222325);
    world->judge.watcher.on_change = on_change;
    sw_sim_store_watch(world->store, &world->judge.watcher);
}

void judge_done(struct world *world)
{
    sw_sim_store_unwatch(world->store, &world->judge.watcher);
    for (int i = 0; i < DEPLOYMENTS_MAX; i++)
        forget(world, i);
    while (world->judge.owners) {
        struct owner *owner = world->judge.owners;
        world->judge.owners = owner->next;
        while (owner->sizes) {
            struct size *size = owner->sizes;
            owner->sizes = size->next;
            sw_free(size);
        }
        sw_free(owner);
    }
}
