/* SPDX-License-Identifier: Apache-2.0 */
/* The further built-in kinds: objects as the API server sends them, decoded by their tables. */
#include <slipway/workloads.h>

#include "test.h"

#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/decode.h"

struct decoded {
    struct sw_intern *intern;
    struct sw_decoder *decoder;
    struct sw_object *object;
};

static struct decoded decode(const struct sw_kind *kind, const char *text)
{
    struct decoded d = {.intern = sw_intern_new()};
    struct sw_error error = {0};
    d.decoder = sw_decoder_new(kind, d.intern);
    if (sw_decode_object(d.decoder, text, strlen(text), NULL, &d.object, &error)) {
        fail_msg("%s", error.text);
    }
    return d;
}

static void done(struct decoded *d)
{
    sw_object_free(d->decoder, d->object);
    sw_decoder_free(d->decoder);
    sw_intern_free(d->intern);
}

#define TEMPLATE                                                                        \
    "{\"metadata\":{\"creationTimestamp\":null,\"labels\":{\"app\":\"db\"}},\"spec\":{" \
    "\"containers\":[{\"name\":\"db\",\"image\":\"db:1\"}],\"restartPolicy\":\"Always\"}}"
#define TEMPLATE_LATER                                                                        \
    "{\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{\"containers\":[{\"name\":\"db\"," \
    "\"image\":\"db:1\"}],\"restartPolicy\":\"Always\"}}"

#define STATEFUL_SET_WITH(template, strategy)                                                      \
    "{\"kind\":\"StatefulSet\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"name\":\"db\","          \
    "\"namespace\":\"shop\",\"uid\":\"u1\",\"resourceVersion\":\"7\",\"generation\":3,"            \
    "\"annotations\":{\"slipway.dev/saved\":\"{}\",\"example.com/else\":\"x\"}},"                  \
    "\"spec\":{\"replicas\":5,\"selector\":{\"matchLabels\":{\"app\":\"db\"}},"                    \
    "\"template\":" template ",\"serviceName\":\"db\",\"podManagementPolicy\":"                    \
                             "\"OrderedReady\"," strategy                                          \
                             "\"revisionHistoryLimit\":10,\"minReadySeconds\":4},"                 \
                             "\"status\":{\"observedGeneration\":3,\"replicas\":5,"                \
                             "\"readyReplicas\":4,"                                                \
                             "\"availableReplicas\":2,\"currentReplicas\":3,\"updatedReplicas\":"  \
                             "1,"                                                                  \
                             "\"currentRevision\":\"db-79f4bd\",\"updateRevision\":\"db-5c8d77\"," \
                             "\"collisionCount\":0}}"

TEST(a_stateful_set)
{
    struct decoded d =
        decode(&sw_kind_stateful_set,
               STATEFUL_SET_WITH(TEMPLATE, "\"updateStrategy\":{\"type\":\"RollingUpdate\","
                                           "\"rollingUpdate\":{\"partition\":2147483647,"
                                           "\"maxUnavailable\":\"30%\"}},"));
    const struct sw_stateful_set *s = (const void *)d.object;

    assert_int_equal(s->replicas, 5);
    assert_string_equal(s->update_strategy.text,
                        "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"partition\":2147483647,"
                        "\"maxUnavailable\":\"30%\"}}");
    assert_int_equal(s->update_strategy.len, strlen(s->update_strategy.text));
    assert_string_equal(s->strategy, "RollingUpdate");
    assert_int_equal(s->partition, INT32_MAX);
    assert_true(s->max_unavailable.is_set && s->max_unavailable.is_percent);
    assert_int_equal(s->max_unavailable.value, 30);
    assert_int_equal(s->min_ready_seconds, 4);
    assert_int_equal(s->observed_generation, 3);
    assert_int_equal(s->status_replicas, 5);
    assert_int_equal(s->ready_replicas, 4);
    assert_int_equal(s->available_replicas, 2);
    assert_int_equal(s->current_replicas, 3);
    assert_int_equal(s->updated_replicas, 1);
    assert_string_equal(s->current_revision, "db-79f4bd");
    assert_string_equal(s->update_revision, "db-5c8d77");
    assert_string_equal(sw_annotation(&s->meta, "slipway.dev/saved"), "{}");
    assert_int_equal(s->meta.annotations.count, 1);
    done(&d);
}

/* Hold and step change the strategy, and an upgraded API server leaves out what it always wrote:
 * the template is the same all the while. */
TEST(the_hash_is_of_the_template_alone)
{
    struct decoded held =
        decode(&sw_kind_stateful_set,
               STATEFUL_SET_WITH(TEMPLATE, "\"updateStrategy\":{\"type\":\"RollingUpdate\","
                                           "\"rollingUpdate\":{\"partition\":2147483647}},"));
    struct decoded plain = decode(&sw_kind_stateful_set, STATEFUL_SET_WITH(TEMPLATE_LATER, ""));
    struct decoded other = decode(
        &sw_kind_stateful_set,
        STATEFUL_SET_WITH("{\"metadata\":{\"labels\":{\"app\":\"db\"}},\"spec\":{\"containers\":["
                          "{\"name\":\"db\",\"image\":\"db:2\"}],\"restartPolicy\":\"Always\"}}",
                          ""));
    const struct sw_stateful_set *h = (const void *)held.object;
    const struct sw_stateful_set *p = (const void *)plain.object;
    const struct sw_stateful_set *o = (const void *)other.object;

    assert_true(sw_hash128_equal(h->template_hash, p->template_hash));
    assert_false(sw_hash128_equal(h->template_hash, o->template_hash));
    assert_null(p->update_strategy.text);
    assert_string_equal(p->strategy, "");
    assert_int_equal(p->partition, 0);
    assert_false(p->max_unavailable.is_set);
    done(&held);
    done(&plain);
    done(&other);
}

TEST(a_daemon_set)
{
    struct decoded d = decode(
        &sw_kind_daemon_set,
        "{\"kind\":\"DaemonSet\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"name\":\"agent\","
        "\"namespace\":\"shop\"},\"spec\":{\"selector\":{},\"template\":" TEMPLATE
        ",\"updateStrategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":2,"
        "\"maxSurge\":0}},\"minReadySeconds\":9},\"status\":{\"currentNumberScheduled\":8,"
        "\"numberMisscheduled\":1,\"desiredNumberScheduled\":9,\"numberReady\":7,"
        "\"observedGeneration\":2,\"updatedNumberScheduled\":5,\"numberAvailable\":6,"
        "\"numberUnavailable\":3}}");
    const struct sw_daemon_set *s = (const void *)d.object;
    struct decoded same = decode(&sw_kind_stateful_set, STATEFUL_SET_WITH(TEMPLATE_LATER, ""));

    assert_true(sw_hash128_equal(
        s->template_hash,
        ((const struct sw_stateful_set *)(const void *)same.object)->template_hash));
    assert_string_equal(s->update_strategy.text,
                        "{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":2,"
                        "\"maxSurge\":0}}");
    assert_string_equal(s->strategy, "RollingUpdate");
    assert_true(s->max_unavailable.is_set && !s->max_unavailable.is_percent);
    assert_int_equal(s->max_unavailable.value, 2);
    assert_int_equal(s->min_ready_seconds, 9);
    assert_int_equal(s->observed_generation, 2);
    assert_int_equal(s->desired, 9);
    assert_int_equal(s->current, 8);
    assert_int_equal(s->ready, 7);
    assert_int_equal(s->available, 6);
    assert_int_equal(s->updated, 5);
    done(&same);
    done(&d);
}

TEST(a_replica_set)
{
    struct decoded d = decode(
        &sw_kind_replica_set,
        "{\"kind\":\"ReplicaSet\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"name\":\"web-5c8d77\","
        "\"namespace\":\"shop\",\"labels\":{\"pod-template-hash\":\"5c8d77\"},\"annotations\":{"
        "\"deployment.kubernetes.io/desired-replicas\":\"3\","
        "\"deployment.kubernetes.io/revision\":\"12\"},\"ownerReferences\":[{\"kind\":"
        "\"Deployment\",\"name\":\"web\",\"uid\":\"u9\",\"controller\":true}]},"
        "\"spec\":{\"replicas\":0,\"minReadySeconds\":2,\"selector\":{},\"template\":" TEMPLATE "},"
        "\"status\":{\"replicas\":4,\"fullyLabeledReplicas\":4,\"readyReplicas\":3,"
        "\"availableReplicas\":2,\"observedGeneration\":6}}");
    const struct sw_replica_set *s = (const void *)d.object;

    assert_int_equal(s->replicas, 0);
    assert_int_equal(s->min_ready_seconds, 2);
    assert_int_equal(s->observed_generation, 6);
    assert_int_equal(s->status_replicas, 4);
    assert_int_equal(s->ready_replicas, 3);
    assert_int_equal(s->available_replicas, 2);
    assert_string_equal(s->meta.owner_uid, "u9");
    assert_string_equal(sw_annotation(&s->meta, "deployment.kubernetes.io/revision"), "12");
    assert_int_equal(s->meta.annotations.count, 1);
    done(&d);
}

TEST(a_pod)
{
    struct decoded d = decode(
        &sw_kind_pod,
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-1\",\"namespace\":"
        "\"shop\",\"labels\":{\"app\":\"web\"}},\"spec\":{\"nodeName\":\"node-3\"},\"status\":{"
        "\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
        "\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-01-01T00:00:05Z\",\"reason\":"
        "\"ContainersNotReady\",\"message\":\"containers with unready status: [web]\"}],"
        "\"startTime\":\"2026-01-01T00:00:01Z\",\"initContainerStatuses\":[{\"name\":\"wait\","
        "\"state\":{\"terminated\":{\"exitCode\":0}},\"ready\":true,\"restartCount\":1}],"
        "\"containerStatuses\":[{\"name\":\"web\",\"state\":{\"waiting\":{\"reason\":"
        "\"CrashLoopBackOff\",\"message\":\"back-off\"}},\"lastState\":{},\"ready\":false,"
        "\"restartCount\":7,\"started\":false},{\"name\":\"side\",\"state\":{\"running\":{}},"
        "\"ready\":true,\"restartCount\":0}]}}");
    const struct sw_pod *p = (const void *)d.object;
    const struct sw_container_status *c = p->containers.at;
    const struct sw_container_status *init = p->init_containers.at;

    assert_string_equal(p->phase, "Running");
    assert_string_equal(p->node_name, "node-3");
    assert_int_equal(p->started_us, INT64_C(1767225601000000));
    assert_true(sw_condition_is(&p->conditions, "Ready", "False"));
    assert_int_equal(sw_condition_get(&p->conditions, "Ready")->last_transition_us,
                     INT64_C(1767225605000000));
    assert_int_equal(p->containers.count, 2);
    assert_string_equal(c[0].name, "web");
    assert_int_equal(c[0].restart_count, 7);
    assert_false(c[0].is_ready);
    assert_string_equal(c[0].waiting_reason, "CrashLoopBackOff");
    assert_string_equal(c[1].name, "side");
    assert_true(c[1].is_ready);
    assert_string_equal(c[1].waiting_reason, "");
    assert_int_equal(p->init_containers.count, 1);
    assert_string_equal(init[0].name, "wait");
    assert_int_equal(init[0].restart_count, 1);
    done(&d);
}

TEST(a_pod_that_nobody_has_seen_yet)
{
    struct decoded d = decode(&sw_kind_pod, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},"
                                            "\"spec\":{},\"status\":{\"phase\":\"Pending\"}}");
    const struct sw_pod *p = (const void *)d.object;

    assert_string_equal(p->node_name, "");
    assert_int_equal(p->started_us, 0);
    assert_int_equal(p->conditions.count, 0);
    assert_int_equal(p->containers.count, 0);
    done(&d);
}

TEST(a_controller_revision)
{
    struct decoded d =
        decode(&sw_kind_controller_revision,
               "{\"kind\":\"ControllerRevision\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"name\":"
               "\"db-5c8d77\",\"namespace\":\"shop\"},\"data\":{\"spec\":{\"template\":{\"$patch\":"
               "\"replace\"}}},\"revision\":4}");
    const struct sw_controller_revision *r = (const void *)d.object;

    assert_int_equal(r->revision, 4);
    assert_string_equal(r->data.text, "{\"spec\":{\"template\":{\"$patch\":\"replace\"}}}");
    done(&d);
}

TEST(a_controller_revision_may_be_large)
{
    size_t len = 900 * 1024;
    char *filler = sw_malloc(len + 1);
    memset(filler, 'x', len);
    SW_AUTO(char, sw_free)
    text = sw_asprintf("{\"metadata\":{\"name\":\"r\"},\"data\":{\"a\":\"%s\"}}", filler);
    struct decoded d = decode(&sw_kind_controller_revision, text);

    assert_int_equal(((const struct sw_controller_revision *)(const void *)d.object)->data.len,
                     len + strlen("{\"a\":\"\"}"));
    done(&d);
    sw_free(filler);
}

/* ---- Secrets ---- */

#define SECRET                                                                                \
    "{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"s\",\"namespace\":"  \
    "\"shop\",\"labels\":{\"app\":\"prometheus\"},\"annotations\":{"                          \
    "\"kubectl.kubernetes.io/last-applied-configuration\":\"c2VzYW1l\"}},\"data\":{"          \
    "\"token\":\"c2VzYW1l\",\"binary\":\"AAEC\",\"empty\":\"\",\"bad\":\"?\",\"none\":null}," \
    "\"type\":\"Opaque\"}"

TEST(values_of_a_secret)
{
    struct decoded d = decode(&sw_kind_secret, SECRET);
    const struct sw_secret *s = (const void *)d.object;
    struct sw_arena *arena = sw_arena_new(0);
    size_t len = 99;

    assert_string_equal(s->type, "Opaque");
    assert_string_equal(sw_labels_get(&s->meta.labels, "app"), "prometheus");
    assert_int_equal(s->data.count, 4);
    assert_int_equal(s->meta.annotations.count, 0);
    assert_string_equal(sw_secret_value(s, "token", arena, &len), "sesame");
    assert_int_equal(len, 6);
    assert_memory_equal(sw_secret_value(s, "binary", arena, &len), "\0\1\2", 4);
    assert_int_equal(len, 3);
    assert_string_equal(sw_secret_value(s, "empty", arena, &len), "");
    assert_int_equal(len, 0);
    assert_non_null(sw_secret_value(s, "token", arena, NULL));
    assert_null(sw_secret_value(s, "bad", arena, &len));
    assert_null(sw_secret_value(s, "none", arena, &len));
    assert_null(sw_secret_value(s, "token2", arena, &len));
    assert_int_equal(len, 0); /* written only with a value */
    sw_arena_free(arena);
    done(&d);
}

/* What is interned outlives the object, and nobody overwrites it. */
TEST(values_of_a_secret_are_interned_nowhere)
{
    struct decoded d = decode(&sw_kind_secret, SECRET);
    const struct sw_secret *s = (const void *)d.object;
    const char *value = sw_labels_get(&s->data, "token");
    const char *interned = sw_intern_ref(d.intern, "c2VzYW1l", 8);

    assert_string_equal(value, interned);
    assert_ptr_not_equal(value, interned);
    assert_in_range((uintptr_t)value, (uintptr_t)d.object,
                    (uintptr_t)d.object + sw_object_size(d.object));
    sw_intern_unref(d.intern, interned);
    done(&d);
}

/* The same text under a kind that is no secret is interned. */
TEST(a_kind_says_whether_it_is_secret)
{
    static struct sw_kind open_kind;
    open_kind = sw_kind_secret;
    open_kind.is_secret = false;
    struct decoded d = decode(&open_kind, SECRET);
    const struct sw_secret *s = (const void *)d.object;
    const char *interned = sw_intern_ref(d.intern, "c2VzYW1l", 8);

    assert_ptr_equal(sw_labels_get(&s->data, "token"), interned);
    sw_intern_unref(d.intern, interned);
    done(&d);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("workloads", a_stateful_set),
        CASE("workloads", the_hash_is_of_the_template_alone),
        CASE("workloads", a_daemon_set),
        CASE("workloads", a_replica_set),
        CASE("workloads", a_pod),
        CASE("workloads", a_pod_that_nobody_has_seen_yet),
        CASE("workloads", a_controller_revision),
        CASE("workloads", a_controller_revision_may_be_large),
        CASE("workloads", values_of_a_secret),
        CASE("workloads", values_of_a_secret_are_interned_nowhere),
        CASE("workloads", a_kind_says_whether_it_is_secret),
    };
    return RUN(tests);
}
