/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stories of tests/data/traces, played by the simulated cluster, against what a real control
 * plane showed (record.py there). Two runs of the real one differ in which counts happen to be
 * written and which are passed over, so of each workload has to agree:
 *
 *   the state in which it ends
 *   what its conditions and revisions say, each by itself in its order
 *   the counts in which each phase comes to rest, that is, before the next change of the generation
 */
#include "cluster.h"

#include "base/map.h"

enum { QUIET_MS = 20000, LIMIT_MS = 120000 };

struct play {
    struct cluster cluster;
    struct sw_sim_store_watcher watcher;
    json_t *seen;    /* {"deployments/web": [state, ...]} */
    json_t *numbers; /* of names that hold a hash */
};

/* ---- what is seen; the same as in record.py ---- */

static int64_t number_of(struct play *play, const char *name)
{
    if (!json_object_get(play->numbers, name))
        json_object_set_new(play->numbers, name,
                            json_integer((json_int_t)json_object_size(play->numbers) + 1));
    return json_integer_value(json_object_get(play->numbers, name));
}

/* The message with ReplicaSet in place of ReplicaSet "web-..." and of replica set "web-...". */
static char *without_names(const char *message)
{
    static const char *const marks[] = {"ReplicaSet \"", "replica set \""};
    for (size_t i = 0; i < SW_ARRAY_SIZE(marks); i++) {
        const char *at = strstr(message, marks[i]);
        const char *end = at ? strchr(at + strlen(marks[i]), '"') : NULL;
        if (end)
            return sw_asprintf("%.*sReplicaSet%s", (int)(at - message), message, end + 1);
    }
    return sw_strdup(message);
}

static json_t *state_of(struct play *play, const struct sw_sim_object *object)
{
    static const char *const counts[] = {
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "currentReplicas",
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberMisscheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    };
    static const char *const notes[] = {"revision", "revision-history", "desired-replicas",
                                        "max-replicas"};
    static const char *const revisions[] = {"currentRevision", "updateRevision"};
    const json_t *status = json_object_get(sw_sim_object_json(object), "status");
    const json_t *annotations = json_object_get(sw_look_meta(object), "annotations");
    json_t *state = json_pack(
        "{s:I, s:I, s:I}", "generation", (json_int_t)sw_look_generation(object),
        "observedGeneration", (json_int_t)sw_look_int(status, "observedGeneration", 0), "wanted",
        (json_int_t)sw_look_int(json_object_get(sw_sim_object_json(object), "spec"), "replicas",
                                0));
    for (size_t i = 0; i < SW_ARRAY_SIZE(counts); i++)
        sw_look_set_count(state, counts[i], sw_look_int(status, counts[i], 0));
    for (size_t i = 0; i < SW_ARRAY_SIZE(notes); i++) {
        char key[64];
        snprintf(key, sizeof(key), "deployment.kubernetes.io/%s", notes[i]);
        if (json_object_get(annotations, key))
            json_object_set(state, notes[i], json_object_get(annotations, key));
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(revisions); i++) {
        const char *name = sw_look_string(status, revisions[i]);
        if (*name)
            json_object_set_new(state, revisions[i], json_integer(number_of(play, name)));
    }
    size_t at;
    json_t *one;
    json_array_foreach(json_object_get(status, "conditions"), at, one)
    {
        SW_AUTO(char, sw_free) message = without_names(sw_look_string(one, "message"));
        SW_AUTO(char, sw_free)
        text = sw_asprintf("%s %s: %s", sw_look_string(one, "status"),
                           sw_look_string(one, "reason"), message);
        json_object_set_new(state, sw_look_string(one, "type"), json_string(text));
    }
    return state;
}

static void on_change(struct sw_sim_store_watcher *watcher, const struct sw_sim_change *change)
{
    static const char *const watched[] = {"deployments", "replicasets", "statefulsets",
                                          "daemonsets"};
    struct play *play = container_of(watcher, struct play, watcher);
    const struct sw_sim_object *object = change->object;
    bool is_watched = false;
    for (size_t i = 0; i < SW_ARRAY_SIZE(watched); i++)
        is_watched = is_watched || strcmp(object->kind->plural, watched[i]) == 0;
    if (!is_watched)
        return;
    char key[300];
    if (strcmp(object->kind->plural, "replicasets") == 0)
        snprintf(key, sizeof(key), "replicasets/%d", (int)number_of(play, object->name));
    else
        snprintf(key, sizeof(key), "%s/%s", object->kind->plural, object->name);
    json_t *state =
        change->type == SW_SIM_DELETED ? json_pack("{s:i}", "gone", 1) : state_of(play, object);
    json_t *states = json_object_get(play->seen, key);
    if (!states) {
        states = json_array();
        json_object_set_new(play->seen, key, states);
    }
    size_t count = json_array_size(states);
    if (!count || !json_equal(json_array_get(states, count - 1), state))
        json_array_append(states, state);
    json_decref(state);
}

static const json_t *last_of(const json_t *states)
{
    size_t count = json_array_size(states);
    return count ? json_array_get(states, count - 1) : NULL;
}

/* ---- steps ---- */

static bool holds(const json_t *state, const json_t *wanted)
{
    const char *key;
    json_t *value;
    json_object_foreach(sw_look_loose(wanted), key, value)
    {
        const json_t *have = json_object_get(state, key);
        bool is_so =
            json_is_string(value)
                ? json_is_string(have) && strncmp(json_string_value(have), json_string_value(value),
                                                  json_string_length(value)) == 0
                : json_equal(have, value);
        if (!is_so)
            return false;
    }
    return true;
}

static void wait_until(struct play *play, const char *key, const json_t *wanted)
{
    uint64_t end_ms = sw_now_ms(play->cluster.loop) + LIMIT_MS;
    while (!holds(last_of(json_object_get(play->seen, key)), wanted)) {
        if (sw_now_ms(play->cluster.loop) > end_ms || !sw_loop_virtual_step(play->cluster.loop)) {
            char *want = json_dumps(wanted, 0);
            char *have = json_dumps(last_of(json_object_get(play->seen, key)), 0);
            fail_msg("%s never became %s but %s", key, want, have);
        }
    }
}

static void do_step(struct play *play, const json_t *step)
{
    const char *in = sw_look_string(step, "in");
    char plural[64] = "", name[64] = "";
    const char *target = sw_look_string(step, json_object_get(step, "patch") ? "patch" : "delete");
    sscanf(target, "%63[^/]/%63s", plural, name);
    if (*in)
        make(&play->cluster, in, json_deep_copy(json_object_get(step, "make")));
    else if (json_object_get(step, "patch"))
        merge(&play->cluster, plural, name, json_object_get(step, "body"));
    else if (json_object_get(step, "delete"))
        assert_int_equal(
            sw_sim_delete(play->cluster.api, find(&play->cluster, plural, name), -1, NULL), 0);
    else if (json_object_get(step, "until"))
        wait_until(play, sw_look_string(step, "until"), json_object_get(step, "is"));
    else
        sw_loop_virtual_advance(play->cluster.loop, QUIET_MS);
}

static json_t *load(const char *name)
{
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/%s.json", TRACES, name);
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json)
        fail_msg("%s: %s", path, error.text);
    return json;
}

static json_t *play_story(const json_t *story, uint64_t seed)
{
    struct play play = {.seen = json_object(), .numbers = json_object()};
    cluster_init(&play.cluster, seed);
    play.watcher.on_change = on_change;
    sw_sim_store_watch(play.cluster.store, &play.watcher);
    json_t *answer;
    assert_int_equal(sw_sim_pods_tell(play.cluster.pods, "PATCH", "/settings",
                                      json_object_get(story, "kubelets"), &answer),
                     200);
    json_decref(answer);
    size_t at;
    json_t *step;
    json_array_foreach(json_object_get(story, "steps"), at, step) do_step(&play, step);
    sw_sim_store_unwatch(play.cluster.store, &play.watcher);
    cluster_done(&play.cluster);
    json_decref(play.numbers);
    return play.seen;
}

/* ---- comparing ---- */

/* Of one member: its values in their order, each once in a row. */
static json_t *values_of(const json_t *states, const char *key)
{
    json_t *values = json_array();
    size_t at;
    json_t *state;
    json_array_foreach(states, at, state)
    {
        json_t *value = json_object_get(state, key);
        json_t *known = value ? json_incref(value) : json_null();
        if (!json_equal(last_of(values), known))
            json_array_append(values, known);
        json_decref(known);
    }
    return values;
}

/* The states after which the wanted thing changed, and the last: what each phase came to. */
static json_t *rests_of(const json_t *states)
{
    json_t *rests = json_array();
    for (size_t i = 0; i < json_array_size(states); i++) {
        json_t *state = json_array_get(states, i), *next = json_array_get(states, i + 1);
        if (!json_equal(json_object_get(state, "generation"), json_object_get(next, "generation")))
            json_array_append(rests, state);
    }
    return rests;
}

static unsigned compare(const char *name, const char *key, const char *what, json_t *have_take,
                        json_t *want_take)
{
    bool is_same = json_equal(have_take, want_take);
    if (!is_same) {
        char *have = json_dumps(have_take, JSON_SORT_KEYS | JSON_ENCODE_ANY);
        char *want = json_dumps(want_take, JSON_SORT_KEYS | JSON_ENCODE_ANY);
        fprintf(stderr, "%s: %s: %s\n  is   %s\n  real %s\n", name, key, what, have, want);
        free(have);
        free(want);
    }
    json_decref(have_take);
    json_decref(want_take);
    return !is_same;
}

/* How often a ReplicaSet was written is a matter of timing. */
static json_t *without_generation(const json_t *state)
{
    json_t *copy = state ? sw_look_copy(state) : json_object();
    json_object_del(copy, "generation");
    json_object_del(copy, "observedGeneration");
    return copy;
}

static unsigned compare_object(const char *name, const char *key, const json_t *have,
                               const json_t *want)
{
    static const char *const in_order[] = {"Progressing",     "Available",      "ReplicaFailure",
                                           "revision",        "wanted",         "revision-history",
                                           "currentRevision", "updateRevision", "gone"};
    bool is_set = strncmp(key, "replicasets/", 12) == 0;
    if (is_set)
        return compare(name, key, "the end", without_generation(last_of(have)),
                       without_generation(last_of(want)));
    unsigned wrong = compare(name, key, "rests", rests_of(have), rests_of(want));
    for (size_t i = 0; i < SW_ARRAY_SIZE(in_order); i++)
        wrong += compare(name, key, in_order[i], values_of(have, in_order[i]),
                         values_of(want, in_order[i]));
    return wrong;
}

static unsigned compare_story(const char *name, const json_t *have, const json_t *want)
{
    unsigned wrong = 0;
    const char *key;
    json_t *states;
    json_object_foreach(sw_look_loose(want), key, states) wrong +=
        compare_object(name, key, json_object_get(have, key), states);
    return wrong + compare(name, "all", "how many workloads",
                           json_integer((json_int_t)json_object_size(have)),
                           json_integer((json_int_t)json_object_size(want)));
}

TEST(shows_what_the_real_control_plane_showed)
{
    json_t *stories = load("stories");
    const char *only = getenv("STORY");
    unsigned wrong = 0, count = 0;
    const char *name;
    json_t *story;
    json_object_foreach(stories, name, story)
    {
        if (only && strcmp(only, name) != 0)
            continue;
        json_t *want = load(name);
        json_t *have = play_story(story, 1);
        if (only)
            json_dumpf(have, stderr, JSON_INDENT(1) | JSON_SORT_KEYS);
        wrong += compare_story(name, have, want);
        json_decref(have);
        json_decref(want);
        count++;
    }
    json_decref(stories);
    assert_true(count > 0);
    assert_int_equal(wrong, 0);
}

/* Whatever the lags are, each phase comes to the same. */
TEST(comes_to_the_same_with_other_lags)
{
    json_t *stories = load("stories");
    unsigned wrong = 0;
    const char *name;
    json_t *story;
    json_object_foreach(stories, name, story)
    {
        json_t *want = load(name);
        for (uint64_t seed = 2; seed < 12; seed++) {
            json_t *have = play_story(story, seed);
            const char *key;
            json_t *states;
            json_object_foreach(want, key, states) wrong += compare(
                name, key, "the end", without_generation(last_of(json_object_get(have, key))),
                without_generation(last_of(states)));
            json_decref(have);
        }
        json_decref(want);
    }
    json_decref(stories);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("traces", shows_what_the_real_control_plane_showed),
        CASE("traces", comes_to_the_same_with_other_lags),
    };
    return RUN(tests);
}
