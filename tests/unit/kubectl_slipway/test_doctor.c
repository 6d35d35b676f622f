/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What doctor judges of objects as the API server has them.
 */
#include "fixture.h"

#include <slipway/json.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/util.h"
#include "doctor.h"
#include "kube/base64.h"

static struct sw_arena *arena;
static struct ks_findings findings;

static void begin(void)
{
    arena = sw_arena_new(0);
    ks_findings_init(&findings, arena);
}

static void end(void)
{
    arena = sw_arena_free(arena);
}

static struct sw_json *json(const char *text)
{
    struct sw_json *value = NULL;
    const char *why = "";

    if (sw_json_parse(arena, text, strlen(text), &value, &why))
        fail_msg("%s in %s", why, text);
    return value;
}

/* The last one. */
static void assert_found(enum ks_result result, const char *words)
{
    const struct ks_finding *found = findings.first;

    assert_non_null(found);
    while (found->next)
        found = found->next;
    if (found->result != result || !strstr(found->what, words))
        fail_msg("%d: %s instead of %d: %s", (int)found->result, found->what, (int)result, words);
    if (result == KS_BAD || result == KS_WARNING)
        assert_true(found->advice[0]);
}

#define FIELDS(fields) "{\"type\":\"object\",\"properties\":{" fields "}}"
#define CRD(established, served, subresources, spec)                                             \
    "{\"spec\":{\"versions\":[{\"name\":\"v1\",\"served\":" served                               \
    ",\"subresources\":{" subresources                                                           \
    "},\"schema\":{\"openAPIV3Schema\":{\"properties\":{\"spec\":" FIELDS(                       \
        spec) ",\"status\":" FIELDS("\"activeDeployments\":{},\"turn\":{},"                      \
                                    "\"observedGeneration\":{}") "}}}}]},"                       \
                                                                 "\"status\":{\"conditions\":[{" \
                                                                 "\"type\":\"Established\","     \
                                                                 "\"status\":\"" established     \
                                                                 "\"}]}}"
#define ALL \
    "\"maxActive\":{},\"suspend\":{},\"availabilityGuard\":{},\"atRest\":{},\"failurePolicy\":{}"

TEST(knows_a_crd_that_will_do)
{
    begin();
    ks_check_crd(&findings, json(CRD("True", "true", "\"status\":{}", ALL)));
    assert_found(KS_GOOD, "served as v1");
    ks_check_crd(&findings, json(CRD("False", "true", "\"status\":{}", ALL)));
    assert_found(KS_BAD, "not established");
    ks_check_crd(&findings, json(CRD("True", "false", "\"status\":{}", ALL)));
    assert_found(KS_BAD, "does not serve v1");
    ks_check_crd(&findings, json(CRD("True", "true", "", ALL)));
    assert_found(KS_BAD, "no subresource status");
    ks_check_crd(&findings, json(CRD("True", "true", "\"status\":{}", "\"maxActive\":{}")));
    assert_found(KS_BAD, "it drops spec.suspend, spec.availabilityGuard");
    ks_check_crd(&findings, json("{}"));
    assert_found(KS_BAD, "not established");
    end();
}

/* ---- webhooks ---- */

#define HOOK(operations, more)                                                              \
    "{\"name\":\"deployments.slipway.dev\",\"clientConfig\":{\"url\":\"https://x/"          \
    "mutate-apps-v1-deployment\",\"caBundle\":\"%s\"},\"reinvocationPolicy\":\"IfNeeded\"," \
    "\"rules\":[{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"resources\":["         \
    "\"deployments\"],"                                                                     \
    "\"operations\":[" operations "]}]" more "}"

static const char *ca_bundle(void)
{
    struct sw_buf text;
    char *pem;
    size_t len;

    assert_int_equal(sw_file_read(WEBHOOK_DATA "/one.crt", 1 << 16, &pem, &len, NULL), 0);
    sw_buf_init(&text, SIZE_MAX);
    sw_base64_encode(&text, pem, len);
    const char *made = sw_arena_strdup(arena, text.bytes);
    sw_buf_done(&text);
    sw_free(pem);
    return made;
}

static void check_webhook(const char *text, bool has_ca)
{
    const char *ca_pem;

    ks_check_webhook(&findings, "slipway", json(text), &ca_pem);
    assert_int_equal(ca_pem != NULL, has_ca);
}

TEST(knows_a_webhook_that_will_do)
{
    begin();
    check_webhook(sw_arena_printf(arena, HOOK("\"CREATE\",\"UPDATE\"", ""), ca_bundle()), true);
    assert_found(KS_GOOD, "is as it should be");
    check_webhook(sw_arena_printf(arena, HOOK("\"*\"", ""), ca_bundle()), true);
    assert_found(KS_GOOD, "is as it should be");
    check_webhook(sw_arena_printf(arena, HOOK("\"CREATE\"", ""), ca_bundle()), true);
    assert_found(KS_BAD, "CREATE and UPDATE");
    check_webhook(
        sw_arena_printf(arena, HOOK("\"*\"", ",\"reinvocationPolicy\":\"Never\""), ca_bundle()),
        true);
    assert_found(KS_WARNING, "reinvocationPolicy");
    end();
}

TEST(reads_the_bundle_of_cas)
{
    static const struct {
        const char *bundle, *words;
    } cases[] = {
        {"", "is empty"},
        {"!!!", "no Base64"},
        {"Z2FyYmxlZA==", "cannot be used"}, /* "garbled" */
        {"YQBi", "cannot be used"},         /* with a NUL in it */
    };

    begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_webhook(sw_arena_printf(arena, HOOK("\"*\"", ""), cases[i].bundle), false);
        assert_found(KS_BAD, cases[i].words);
    }
    end();
}

TEST(knows_its_own_webhooks_by_name_or_path)
{
    begin();
    assert_true(ks_is_our_webhook(json("{\"name\":\"deployments.slipway.dev\"}")));
    assert_true(ks_is_our_webhook(json("{\"name\":\"x\",\"clientConfig\":{\"service\":{\"path\":"
                                       "\"/mutate-apps-v1-deployment\"}}}")));
    assert_true(ks_is_our_webhook(
        json("{\"clientConfig\":{\"url\":\"https://a:9443/mutate-apps-v1-deployment\"}}")));
    assert_false(
        ks_is_our_webhook(json("{\"name\":\"x\",\"clientConfig\":{\"url\":\"https://a\"}}")));
    assert_false(ks_is_our_webhook(json("{}")));
    end();
}

/* ---- replicas, lease, version ---- */

#define OWN(replicas, ready, updated, image)                                                 \
    "{\"metadata\":{\"namespace\":\"kube-system\",\"name\":\"slipway\"},\"spec\":{"          \
    "\"replicas\":" #replicas ",\"template\":{\"spec\":{\"containers\":[{\"image\":\"" image \
    "\"}]}}},\"status\":{\"readyReplicas\":" #ready ",\"updatedReplicas\":" #updated "}}"

TEST(counts_replicas_and_compares_versions)
{
    begin();
    ks_check_replicas(&findings, json(OWN(2, 2, 2, "a/slipway:1.2.3")), "1.2.9");
    assert_found(KS_GOOD, "slipway is 1.2.3, this plugin 1.2.9");
    assert_int_equal(findings.counts[KS_GOOD], 2);
    ks_check_replicas(&findings, json(OWN(2, 2, 2, "a/slipway:1.3.0")), "1.2.9");
    assert_found(KS_WARNING, "slipway is 1.3.0");
    ks_check_replicas(&findings, json(OWN(2, 2, 2, "a/slipway:latest")), "1.2.9");
    assert_found(KS_UNKNOWN, "does not say its version");
    assert_int_equal(findings.counts[KS_BAD], 0);
    ks_check_replicas(&findings, json(OWN(2, 0, 2, "a/slipway:1.2.3")), "1.2.9");
    ks_check_replicas(&findings, json(OWN(0, 0, 0, "a/slipway:1.2.3")), "1.2.9");
    assert_int_equal(findings.counts[KS_BAD], 2);
    ks_check_replicas(&findings, json(OWN(2, 1, 1, "a/slipway:1.2.3")), "1.2.9");
    assert_int_equal(findings.counts[KS_WARNING], 3); /* not ready; being updated */
    end();
}

TEST(reads_the_version_of_an_image)
{
    static const struct {
        const char *image, *version;
    } cases[] = {
        {"slipway:0.2.1", "0.2.1"},
        {"registry:5000/slipway:v0.2.1", "0.2.1"},
        {"registry:5000/slipway", NULL},
        {"slipway", NULL},
        {"slipway:0.2.1@sha256:abc", "0.2.1"},
        {"slipway@sha256:abc", NULL},
        {"slipway:main", NULL},
        {"", NULL},
    };

    begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *found = ks_image_version(arena, cases[i].image);
        if (cases[i].version)
            assert_string_equal(found, cases[i].version);
        else
            assert_null(found);
    }
    end();
}

#define LEASE(holder, renewed)                \
    "{\"spec\":{\"holderIdentity\":\"" holder \
    "\",\"leaseDurationSeconds\":15,\"renewTime\":\"" renewed "\"}}"

TEST(judges_the_lease_by_its_age)
{
    begin();
    ks_check_lease(&findings, json(LEASE("pod-a", "2030-01-01T00:00:50.000000Z")), 2, NOW_US);
    assert_found(KS_GOOD, "pod-a leads");
    ks_check_lease(&findings, json(LEASE("pod-a", "2030-01-01T00:00:10.000000Z")), 2, NOW_US);
    assert_found(KS_BAD, "renewed 50s ago, by pod-a");
    ks_check_lease(&findings, json(LEASE("", "2030-01-01T00:00:50.000000Z")), 2, NOW_US);
    assert_found(KS_BAD, "nobody holds");
    ks_check_lease(&findings, json("{}"), 2, NOW_US);
    assert_found(KS_BAD, "nobody holds");
    ks_check_lease(&findings, NULL, 2, NOW_US);
    assert_found(KS_BAD, "several replicas");
    ks_check_lease(&findings, NULL, 1, NOW_US);
    assert_found(KS_UNKNOWN, "no Lease");
    end();
}

TEST(finds_coordinations_that_cannot_work)
{
    struct cluster *cluster = cluster_new();

    begin();
    group(cluster, "a", "", "");
    ks_check_coordinations(&findings, world_of(cluster), NOW_US);
    assert_found(KS_GOOD, "1 coordination, none in trouble");
    group(cluster, "b", "\"labelSelector\":null", "");
    ks_check_coordinations(&findings, world_of(cluster), NOW_US);
    assert_found(KS_WARNING, "shop/b has no labelSelector");
    group(cluster, "c", "\"labelSelector\":{\"matchLabels\":{\"-\":\"x\"}}", "");
    ks_check_coordinations(&findings, world_of(cluster), NOW_US);
    assert_found(KS_BAD, "shop/c");
    group(cluster, "d", "", "\"observedGeneration\":0");
    ks_check_coordinations(&findings, world_of(cluster), NOW_US);
    assert_found(KS_BAD, "shop/d has been changed");
    cluster_free(cluster);
    end();
}

TEST(finds_stepped_rollouts_that_are_not_obeyed)
{
    struct cluster *cluster = cluster_new();

    begin();
    ks_check_rollouts(&findings, world_of(cluster), NOW_US);
    assert_null(findings.first);
    rollout(cluster, "a", "x", "2029-01-01T00:00:00Z", "Progressing", "");
    ks_check_rollouts(&findings, world_of(cluster), NOW_US);
    assert_found(KS_GOOD, "1 SteppedRollout, none in trouble");
    rollout(cluster, "b", "x", "2029-01-01T00:00:00Z", "Failed", "\"message\":\"retreated\"");
    ks_check_rollouts(&findings, world_of(cluster), NOW_US);
    assert_found(KS_WARNING, "shop/b has failed: retreated");
    rollout(cluster, "c", "x", "2029-01-01T00:00:00Z", "Initializing",
            "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"InvalidSpec\","
            "\"message\":\"spec.steps\"}]");
    ks_check_rollouts(&findings, world_of(cluster), NOW_US);
    assert_found(KS_WARNING, "shop/c is not obeyed: InvalidSpec: spec.steps");
    rollout(cluster, "d", "x", "2029-01-01T00:00:00Z", "", "\"observedGeneration\":0");
    ks_check_rollouts(&findings, world_of(cluster), NOW_US);
    assert_found(KS_BAD, "shop/d has been changed");
    cluster_free(cluster);
    end();
}

/* ---- the webhooks of stepping ---- */

static const struct sw_json *list_of(const char *name, const char *resource, const char *more)
{
    return json(sw_arena_printf(
        arena,
        "{\"items\":[{\"metadata\":{\"name\":\"slipway\"},\"webhooks\":[{\"name\":\"%s\","
        "\"clientConfig\":{\"caBundle\":\"%s\"},\"rules\":[{\"apiGroups\":[\"*\"],"
        "\"apiVersions\":[\"*\"],\"resources\":[\"%s\"],\"operations\":[\"*\"]}]%s}]}]}",
        name, ca_bundle(), resource, more));
}

TEST(knows_the_webhooks_that_stepping_needs)
{
    begin();
    ks_check_stepping_webhooks(
        &findings,
        list_of("statefulsets.slipway.dev", "statefulsets", ",\"reinvocationPolicy\":\"IfNeeded\""),
        true);
    assert_int_equal(findings.counts[KS_GOOD], 1);
    assert_int_equal(findings.counts[KS_BAD], 1);
    assert_found(KS_BAD, "no configuration has the webhook daemonsets.slipway.dev");
    ks_check_stepping_webhooks(&findings, list_of("statefulsets.slipway.dev", "deployments", ""),
                               true);
    assert_int_equal(findings.counts[KS_WARNING], 1); /* reinvocationPolicy */
    assert_int_equal(findings.counts[KS_BAD], 3);
    ks_check_stepping_webhooks(
        &findings, list_of("steppedrollouts.slipway.dev", "steppedrollouts", ""), false);
    assert_found(KS_GOOD, "webhook steppedrollouts.slipway.dev of slipway is as it should be");
    ks_check_stepping_webhooks(&findings, json("{\"items\":[]}"), false);
    assert_found(KS_WARNING, "no configuration has the webhook steppedrollouts.slipway.dev");
    end();
}

/* ---- permissions ---- */

/* Whoever needs a new permission writes it into the manifests; doctor must ask for it. */
static bool is_asked_for(const struct ks_permission *table, const char *resource, size_t of_name)
{
    for (const struct ks_permission *p = table; p->resource; p++)
        if (strlen(p->resource) == of_name && memcmp(p->resource, resource, of_name) == 0)
            return true;
    return false;
}

static void assert_all_are_asked_for(const char *path, bool is_stepping)
{
    char *text, *end_of_line;
    size_t len;

    assert_int_equal(sw_file_read(path, 1 << 18, &text, &len, NULL), 0);
    for (const char *line = text; *line; line = end_of_line + 1) {
        const char *resource = strstr(line, "resources: [");
        end_of_line = strchr(line, '\n');
        assert_non_null(end_of_line);
        if (!resource || resource > end_of_line || memchr(line, '#', (size_t)(resource - line)))
            continue;
        resource += strlen("resources: [");
        while (*resource && *resource != ']') {
            size_t of_name = strcspn(resource, "/,]");
            if (!is_asked_for(ks_permissions, resource, of_name) &&
                !(is_stepping && is_asked_for(ks_stepping_permissions, resource, of_name)))
                fail_msg("%s has %.*s, of which doctor knows nothing", path, (int)of_name,
                         resource);
            resource += strcspn(resource, ",]");
            resource += strspn(resource, ", ");
        }
    }
    sw_free(text);
}

TEST(asks_for_each_resource_of_the_manifest)
{
    begin();
    assert_all_are_asked_for(RBAC, false);
    assert_all_are_asked_for(STEPPING_RBAC, true);
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("doctor", knows_a_crd_that_will_do),
        CASE("doctor", knows_a_webhook_that_will_do),
        CASE("doctor", reads_the_bundle_of_cas),
        CASE("doctor", knows_its_own_webhooks_by_name_or_path),
        CASE("doctor", counts_replicas_and_compares_versions),
        CASE("doctor", reads_the_version_of_an_image),
        CASE("doctor", judges_the_lease_by_its_age),
        CASE("doctor", finds_coordinations_that_cannot_work),
        CASE("doctor", finds_stepped_rollouts_that_are_not_obeyed),
        CASE("doctor", knows_the_webhooks_that_stepping_needs),
        CASE("doctor", asks_for_each_resource_of_the_manifest),
    };
    return RUN(tests);
}
