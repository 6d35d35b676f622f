/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slipway's reads that are not kept (slipway/read.h) against the simulated cluster: what its
 * controllers write is what the tables of slipway/workloads.h bind, and a list is whole or none
 * however the network behaves.
 */
#include <slipway/read.h>
#include <slipway/workloads.h>

#include "base/error.h"
#include "base/metrics.h"
#include "cluster.h"
#include "direct.h"
#include "kube/transport.h"
#include "runtime/core.h"

struct scene {
    struct cluster cluster;
    struct sw_sim_wire *wire;
    struct sw_transport *transport;
    struct sw_metrics *metrics;
    struct sw_log log;
    struct sw_core *core;
    struct sw_instance *self;
};

static int start(struct sw_instance *self, const void *config)
{
    ((struct scene *)(uintptr_t)config)->self = self;
    return 0;
}

static const struct sw_module reader = {SW_MODULE_HEAD("reader"), .start = start};

static struct scene *begin(void)
{
    static const struct sw_core_options options = {.username = "me", .requests_per_second = 1000};
    struct scene *s = calloc(1, sizeof(*s));
    struct sw_error error = {0};

    cluster_init(&s->cluster, 5);
    s->wire = sw_sim_wire_new(s->cluster.loop, s->cluster.api, 3);
    s->transport = sw_sim_wire_open(s->wire, s->cluster.loop, "me", "test");
    s->metrics = sw_metrics_new();
    s->core = sw_core_new(s->cluster.loop, s->transport, &options, s->metrics, &s->log);
    assert_int_equal(sw_core_add(s->core, &reader, s, &error), 0);
    sw_core_open(s->core);
    return s;
}

static void end(struct scene *s)
{
    sw_core_free(s->core);
    s->transport->ops->close(s->transport);
    sw_loop_virtual_advance(s->cluster.loop, 1000);
    sw_sim_wire_free(s->wire);
    sw_metrics_free(s->metrics);
    cluster_done(&s->cluster);
    free(s);
}

static void settle(struct scene *s)
{
    sw_loop_virtual_advance(s->cluster.loop, 20000);
    assert_true(sw_sim_workloads_is_quiet(s->cluster.workloads));
}

/* ---- what has come ---- */

typedef void (*look_fn)(const struct sw_object *object);

struct read {
    unsigned answers;
    enum sw_outcome outcome;
    size_t count;
    bool is_cut;
    look_fn look; /* at each object */
};

static void on_answer(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct read *read = arg;

    (void)self;
    read->answers++;
    read->outcome = answer->outcome;
    if (answer->object && read->look)
        read->look(answer->object);
}

static void on_list(struct sw_instance *self, void *arg, const struct sw_list_answer *answer)
{
    struct read *read = arg;

    (void)self;
    read->answers++;
    read->outcome = answer->outcome;
    read->count = answer->count;
    read->is_cut = answer->is_cut;
    for (size_t i = 0; i < answer->count && read->look; i++)
        read->look(answer->objects[i]);
}

static struct read get(struct scene *s, const struct sw_kind *kind, const char *name, look_fn look)
{
    struct read read = {.look = look};

    assert_int_equal(sw_read(s->self, kind, "default", name, on_answer, &read), 0);
    sw_loop_virtual_advance(s->cluster.loop, 60000);
    assert_int_equal(read.answers, 1);
    return read;
}

static struct read list(struct scene *s, const struct sw_kind *kind, const char *selector,
                        size_t most, look_fn look)
{
    struct read read = {.look = look};

    assert_int_equal(sw_list_now(s->self, kind, "default", selector, most, on_list, &read), 0);
    sw_loop_virtual_advance(s->cluster.loop, 70000);
    assert_int_equal(read.answers, 1);
    return read;
}

/* ---- the kinds ---- */

#define CONTAINERS "'spec': {'containers': [{'name': 'c', 'image': 'i:1'}]}"
#define WORKLOAD(name, more)                                                                      \
    "{'metadata': {'name': '" name "'}, 'spec': {" more "'selector': {'matchLabels': "            \
    "{'app': '" name "'}}, 'template': {'metadata': {'labels': {'app': '" name "'}}, " CONTAINERS \
    "}}}"

static void is_stateful_set(const struct sw_object *object)
{
    const struct sw_stateful_set *set = (const void *)object;

    assert_int_equal(set->replicas, 3);
    assert_int_equal(set->observed_generation, object->generation);
    assert_int_equal(set->status_replicas, 3);
    assert_int_equal(set->ready_replicas, 3);
    assert_int_equal(set->updated_replicas, 3);
    assert_string_equal(set->strategy, "RollingUpdate");
    assert_int_equal(set->partition, 0);
    assert_true(set->update_strategy.len > 0);
    assert_true(set->update_revision[0]);
    assert_string_equal(set->current_revision, set->update_revision);
    assert_true(set->template_hash.high != 0);
}

static void is_daemon_set(const struct sw_object *object)
{
    const struct sw_daemon_set *set = (const void *)object;

    assert_int_equal(set->desired, 3);
    assert_int_equal(set->current, 3);
    assert_int_equal(set->ready, 3);
    assert_int_equal(set->available, 3);
    assert_int_equal(set->updated, 3);
    assert_string_equal(set->strategy, "RollingUpdate");
    assert_int_equal(set->max_unavailable.value, 1);
}

static void is_replica_set(const struct sw_object *object)
{
    const struct sw_replica_set *set = (const void *)object;

    assert_int_equal(set->replicas, 2);
    assert_int_equal(set->available_replicas, 2);
    assert_string_equal(sw_annotation(object, "deployment.kubernetes.io/revision"), "1");
    assert_true(object->owner_uid[0]);
}

static void is_running(const struct sw_object *object)
{
    const struct sw_pod *pod = (const void *)object;
    const struct sw_container_status *container = pod->containers.at;

    assert_string_equal(pod->phase, "Running");
    assert_true(pod->node_name[0]);
    assert_true(pod->started_us > 0);
    assert_true(sw_condition_is(&pod->conditions, "Ready", "True"));
    assert_int_equal(pod->containers.count, 1);
    assert_string_equal(container->name, "c");
    assert_true(container->is_ready);
    assert_int_equal(container->restart_count, 0);
}

static void is_revision(const struct sw_object *object)
{
    const struct sw_controller_revision *revision = (const void *)object;

    assert_int_equal(revision->revision, 1);
    assert_non_null(strstr(revision->data.text, "\"template\""));
    assert_true(object->owner_uid[0]);
}

static void is_secret(const struct sw_object *object)
{
    struct sw_arena *arena = sw_arena_new(0);

    assert_string_equal(sw_secret_value((const void *)object, "token", arena, NULL), "sesame");
    sw_arena_free(arena);
}

TEST(every_kind_is_read_as_its_controller_writes_it)
{
    struct scene *s = begin();

    make(&s->cluster, "statefulsets",
         json_of(WORKLOAD("db", "'replicas': 3, 'serviceName': 'db', ")));
    make(&s->cluster, "daemonsets", json_of(WORKLOAD("agent", "")));
    make(&s->cluster, "deployments", json_of(WORKLOAD("web", "'replicas': 2, ")));
    make(&s->cluster, "secrets",
         json_of("{'metadata': {'name': 's'}, 'data': {'token': 'c2VzYW1l'}}"));
    settle(s);
    assert_int_equal(get(s, &sw_kind_stateful_set, "db", is_stateful_set).outcome, SW_OK);
    assert_int_equal(get(s, &sw_kind_daemon_set, "agent", is_daemon_set).outcome, SW_OK);
    assert_int_equal(get(s, &sw_kind_secret, "s", is_secret).outcome, SW_OK);
    assert_int_equal(get(s, &sw_kind_secret, "none", NULL).outcome, SW_NOT_FOUND);
    assert_int_equal(list(s, &sw_kind_replica_set, "app=web", 0, is_replica_set).count, 1);
    assert_int_equal(list(s, &sw_kind_pod, "app=web", 0, is_running).count, 2);
    assert_int_equal(list(s, &sw_kind_pod, "app in (db, agent)", 0, is_running).count, 6);
    assert_int_equal(list(s, &sw_kind_pod, NULL, 0, is_running).count, 8);
    assert_int_equal(list(s, &sw_kind_controller_revision, NULL, 0, is_revision).count, 2);
    end(s);
}

/* ---- many ---- */

enum { MANY = 1200 }; /* three pages */

static void make_many(struct scene *s)
{
    for (int i = 0; i < MANY; i++) {
        SW_AUTO(char, sw_free)
        text = sw_asprintf("{'metadata': {'name': 's%04d', 'labels': {'half': '%d'}}}", i, i % 2);
        make(&s->cluster, "secrets", json_of(text));
    }
}

TEST(lists_of_many_pages_are_whole)
{
    struct scene *s = begin();

    make_many(s);
    assert_int_equal(list(s, &sw_kind_secret, NULL, 0, NULL).count, MANY);
    assert_int_equal(list(s, &sw_kind_secret, "half=1", 0, NULL).count, MANY / 2);
    struct read read = list(s, &sw_kind_secret, NULL, MANY, NULL);
    assert_int_equal(read.count, MANY);
    assert_false(read.is_cut);
    read = list(s, &sw_kind_secret, NULL, MANY - 1, NULL);
    assert_int_equal(read.count, MANY - 1);
    assert_true(read.is_cut);
    end(s);
}

TEST(a_list_is_whole_or_none_whatever_the_network_does)
{
    static const struct sw_sim_wire_faults faults = {
        .delay_max_ms = 20,
        .lose_request = 300,
        .lose_answer = 300,
        .break_stream = 1000,
        .answer_410 = 2000,
        .answer_429 = 1000,
        .answer_500 = 300,
        .answer_503 = 500,
    };
    struct scene *s = begin();
    unsigned whole = 0, none = 0;

    make_many(s);
    sw_sim_wire_set_faults(s->wire, &faults);
    for (int i = 0; i < 60; i++) {
        struct read read = list(s, &sw_kind_secret, NULL, 0, NULL);
        assert_int_equal(read.count, read.outcome == SW_OK ? MANY : 0);
        whole += read.outcome == SW_OK;
        none += read.outcome != SW_OK;
    }
    assert_in_range(whole, 5, 55);
    assert_in_range(none, 5, 55);
    end(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("reads", every_kind_is_read_as_its_controller_writes_it),
        CASE("reads", lists_of_many_pages_are_whole),
        CASE("reads", a_list_is_whole_or_none_whatever_the_network_does),
    };
    return RUN(tests);
}
