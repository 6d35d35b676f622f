/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a webhook configuration is mended, and what is left alone.
 */
#include "runtime/webhook_mend.h"

#include <slipway/admission.h>
#include <slipway/apps.h>

#include "../test.h"
#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/decode.h"

#define CA "Q0E="
#define RULE                                                                              \
    "{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"resources\":[\"deployments\"]," \
    "\"operations\":[\"CREATE\",\"UPDATE\"],\"scope\":\"Namespaced\"}"
#define TEST_NAME(index) \
    "{\"op\":\"test\",\"path\":\"/webhooks/" index "/name\",\"value\":\"ours.example.org\"}"
#define ADD(path, value) "{\"op\":\"add\",\"path\":\"/webhooks/" path "\",\"value\":" value "}"

static const struct sw_admission ours = {
    .path = "/ours",
    .webhook_name = "ours.example.org",
    .kind = &sw_kind_deployment,
    .is_mutating = true,
    .on_create = true,
    .on_update = true,
    .is_reinvoked = true,
};

/* An entry of ours with which nothing is wrong, but for what a test replaces. */
struct parts {
    const char *ca_bundle, *client, *rules, *policy;
};
#define RIGHT                                                    \
    .ca_bundle = CA,                                             \
    .client = "\"service\":{\"namespace\":\"n\",\"name\":\"s\"," \
              "\"path\":\"/ours\"}",                             \
    .rules = "[" RULE "]", .policy = "IfNeeded"

static char *entry_of(const struct parts *p)
{
    return sw_asprintf("{\"name\":\"ours.example.org\",\"clientConfig\":{%s,\"caBundle\":\"%s\"},"
                       "\"failurePolicy\":\"Ignore\",\"rules\":%s,\"reinvocationPolicy\":\"%s\"}",
                       p->client, p->ca_bundle, p->rules, p->policy);
}

struct scratch {
    struct sw_intern *intern;
    struct sw_decoder *decoder;
    struct sw_object *object;
    struct sw_arena *arena;
    struct sw_webhook_mend mend;
};

static void mend(struct scratch *s, const char *annotations, const char *entries,
                 const struct sw_admission *wanted, const char *ca_bundle)
{
    SW_AUTO(char, sw_free)
    text = sw_asprintf("{\"kind\":\"MutatingWebhookConfiguration\",\"apiVersion\":"
                       "\"admissionregistration.k8s.io/v1\",\"metadata\":{\"name\":\"c\",\"uid\":"
                       "\"u\",\"resourceVersion\":\"7\",\"annotations\":{%s}},\"webhooks\":[%s]}",
                       annotations, entries);
    struct sw_error error = {0};

    *s = (struct scratch){.intern = sw_intern_new(), .arena = sw_arena_new(0)};
    s->decoder = sw_decoder_new(&sw_kind_mutating_webhooks, s->intern);
    if (sw_decode_object(s->decoder, text, strlen(text), "", &s->object, &error))
        fail_msg("%s: %s", error.text, text);
    s->mend = sw_webhook_mend(s->arena, (const struct sw_webhook_object *)s->object, &wanted, 1,
                              ca_bundle);
}

static void done(struct scratch *s)
{
    sw_object_free(s->decoder, s->object);
    sw_decoder_free(s->decoder);
    sw_intern_free(s->intern);
    sw_arena_free(s->arena);
}

/* patch "": nothing is to be changed. */
static void expect_all(const char *annotations, const char *entries,
                       const struct sw_admission *wanted, const char *ca_bundle, const char *patch,
                       const char *changes, const char *missing)
{
    struct scratch s;

    mend(&s, annotations, entries, wanted, ca_bundle);
    assert_string_equal(s.mend.patch ? sw_json_dump(s.mend.patch, s.arena, NULL) : "", patch);
    assert_string_equal(s.mend.changes, changes);
    assert_string_equal(s.mend.missing, missing);
    done(&s);
}

static void expect(const struct parts *parts, const char *patch, const char *changes)
{
    SW_AUTO(char, sw_free) entry = entry_of(parts);
    SW_AUTO(char, sw_free)
    all = patch[0] ? sw_asprintf("[" TEST_NAME("0") ",%s]", patch) : sw_strdup("");

    expect_all("", entry, &ours, CA, all, changes, "");
}

TEST(leaves_what_is_right_alone)
{
    expect(&(struct parts){RIGHT}, "", "");
    /* The same in other words. */
    struct parts parts = {RIGHT};
    parts.rules = "[{\"resources\":[\"deployments\"],\"operations\":[\"UPDATE\",\"CREATE\","
                  "\"UPDATE\"],\"apiVersions\":[\"v1\"],\"apiGroups\":[\"apps\"],\"scope\":\"*\"}]";
    expect(&parts, "", "");
    parts.rules = "[{\"resources\":[\"deployments\"],\"operations\":[\"CREATE\",\"UPDATE\"],"
                  "\"apiVersions\":[\"v1\"],\"apiGroups\":[\"apps\"]}]";
    expect(&parts, "", "");
}

TEST(mends_the_ca)
{
    struct parts parts = {RIGHT};

    parts.ca_bundle = "Z2FyYmxlZA==";
    expect(&parts, ADD("0/clientConfig/caBundle", "\"" CA "\""), "ours.example.org: caBundle");
    parts.ca_bundle = "";
    expect(&parts, ADD("0/clientConfig/caBundle", "\"" CA "\""), "ours.example.org: caBundle");
    SW_AUTO(char, sw_free) entry = entry_of(&parts);
    expect_all("", entry, &ours, NULL, "", "", "");
}

TEST(leaves_the_ca_to_cert_manager_where_it_fills_it_in)
{
    static const char *const annotations[] = {
        "\"cert-manager.io/inject-ca-from\":\"n/c\"",
        "\"cert-manager.io/inject-ca-from-secret\":\"n/s\"",
        "\"cert-manager.io/inject-apiserver-ca\":\"true\"",
    };
    struct parts parts = {RIGHT};

    parts.ca_bundle = "";
    SW_AUTO(char, sw_free) entry = entry_of(&parts);
    for (size_t i = 0; i < SW_ARRAY_SIZE(annotations); i++)
        expect_all(annotations[i], entry, &ours, CA, "", "", "");
    expect_all("\"cert-manager.io/allow-direct-injection\":\"true\"", entry, &ours, CA,
               "[" TEST_NAME("0") "," ADD("0/clientConfig/caBundle", "\"" CA "\"") "]",
               "ours.example.org: caBundle", "");
    /* All else is kept there too. */
    parts.policy = "Never";
    SW_AUTO(char, sw_free) other = entry_of(&parts);
    expect_all(annotations[0], other, &ours, CA,
               "[" TEST_NAME("0") "," ADD("0/reinvocationPolicy", "\"IfNeeded\"") "]",
               "ours.example.org: reinvocationPolicy", "");
}

TEST(mends_rules)
{
    static const char *const wrong[] = {
        "[]",
        "null",
        "[" RULE "," RULE "]",
        "[{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"resources\":[\"deployments\"],"
        "\"operations\":[\"CREATE\"],\"scope\":\"Namespaced\"}]",
        "[{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"resources\":[\"deployments\"],"
        "\"operations\":[\"*\"],\"scope\":\"Namespaced\"}]",
        "[{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"resources\":[\"deployments\","
        "\"statefulsets\"],\"operations\":[\"CREATE\",\"UPDATE\"],\"scope\":\"Namespaced\"}]",
        "[{\"apiGroups\":[\"*\"],\"apiVersions\":[\"v1\"],\"resources\":[\"deployments\"],"
        "\"operations\":[\"CREATE\",\"UPDATE\"],\"scope\":\"Namespaced\"}]",
        "[{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1beta1\"],\"resources\":[\"deployments\"],"
        "\"operations\":[\"CREATE\",\"UPDATE\"],\"scope\":\"Namespaced\"}]",
        "[{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"resources\":[\"deployments\"],"
        "\"operations\":[\"CREATE\",\"UPDATE\"],\"scope\":\"Cluster\"}]",
    };
    struct parts parts = {RIGHT};

    for (size_t i = 0; i < SW_ARRAY_SIZE(wrong); i++) {
        parts.rules = wrong[i];
        expect(&parts, ADD("0/rules", "[" RULE "]"), "ours.example.org: rules");
    }
}

TEST(writes_rules_as_the_module_asked)
{
    static const struct sw_kind kind = {
        .group = "", .version = "v1", .kind = "Node", .plural = "nodes", .is_cluster_scoped = true};
    struct sw_admission admission = ours;
    struct parts parts = {RIGHT};

    admission.kind = &kind;
    admission.on_create = admission.on_update = false;
    admission.on_delete = true;
    SW_AUTO(char, sw_free) entry = entry_of(&parts);
    expect_all("", entry, &admission, CA,
               "[" TEST_NAME("0") "," ADD("0/rules",
                                          "[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],"
                                          "\"resources\":[\"nodes\"],\"operations\":[\"DELETE\"],"
                                          "\"scope\":\"Cluster\"}]") "]",
               "ours.example.org: rules", "");
}

TEST(mends_the_reinvocation_policy_of_mutating_webhooks)
{
    struct sw_admission admission = ours;
    struct parts parts = {RIGHT};

    parts.policy = "Never";
    expect(&parts, ADD("0/reinvocationPolicy", "\"IfNeeded\""),
           "ours.example.org: reinvocationPolicy");
    parts.policy = "";
    expect(&parts, ADD("0/reinvocationPolicy", "\"IfNeeded\""),
           "ours.example.org: reinvocationPolicy");
    SW_AUTO(char, sw_free) none = entry_of(&parts);
    admission.is_reinvoked = false;
    expect_all("", none, &admission, CA, "", "", "");
    parts.policy = "IfNeeded";
    SW_AUTO(char, sw_free) entry = entry_of(&parts);
    expect_all("", entry, &admission, CA,
               "[" TEST_NAME("0") "," ADD("0/reinvocationPolicy", "\"Never\"") "]",
               "ours.example.org: reinvocationPolicy", "");
    admission.is_mutating = false; /* a validating one has none */
    expect_all("", none, &admission, CA, "", "", "");
}

TEST(mends_the_path_of_a_service)
{
    struct parts parts = {RIGHT};

    parts.client = "\"service\":{\"namespace\":\"n\",\"name\":\"s\",\"path\":\"/x/ours\"}";
    expect(&parts, ADD("0/clientConfig/service/path", "\"/ours\""), "ours.example.org: path");
    parts.client = "\"service\":{\"namespace\":\"n\",\"name\":\"s\",\"port\":8443}";
    expect(&parts, ADD("0/clientConfig/service/path", "\"/ours\""), "ours.example.org: path");
}

TEST(mends_the_path_of_a_url)
{
    static const char *const urls[][2] = {
        {"https://h:9443/ours", NULL},
        {"https://h/proxied/ours", NULL}, /* by a proxy that takes it away */
        {"https://h:9443/theirs", "https://h:9443/ours"},
        {"https://h:9443", "https://h:9443/ours"},
        {"https://[::1]:9443/", "https://[::1]:9443/ours"},
        {"https://ours", "https://ours/ours"},
        {"https://h/ours/deeper", "https://h/ours"},
    };
    struct parts parts = {RIGHT};

    for (size_t i = 0; i < SW_ARRAY_SIZE(urls); i++) {
        SW_AUTO(char, sw_free) client = sw_asprintf("\"url\":\"%s\"", urls[i][0]);
        SW_AUTO(char, sw_free)
        patch = urls[i][1] ? sw_asprintf(ADD("0/clientConfig/url", "\"%s\""), urls[i][1])
                           : sw_strdup("");
        parts.client = client;
        expect(&parts, patch, urls[i][1] ? "ours.example.org: url" : "");
    }
}

TEST(finds_the_entry_by_its_name_wherever_it_is)
{
    struct parts parts = {RIGHT};
    static const char other[] = "{\"name\":\"other.example.org\",\"clientConfig\":{\"url\":"
                                "\"https://other\",\"caBundle\":\"eA==\"},\"rules\":[]}";

    parts.ca_bundle = "";
    parts.policy = "Never";
    SW_AUTO(char, sw_free) entry = entry_of(&parts);
    SW_AUTO(char, sw_free) both = sw_asprintf("%s,%s,%s", other, entry, other);
    expect_all("", both, &ours, CA,
               "[" TEST_NAME("1") "," ADD("1/clientConfig/caBundle", "\"" CA "\"") "," ADD(
                   "1/reinvocationPolicy", "\"IfNeeded\"") "]",
               "ours.example.org: caBundle, reinvocationPolicy", "");
}

TEST(finds_the_entry_by_its_path_where_it_has_another_name)
{
    static const char *const clients[] = {
        "\"service\":{\"namespace\":\"n\",\"name\":\"s\",\"path\":\"/ours\"}",
        "\"url\":\"https://h/proxied/ours\"",
    };

    for (size_t i = 0; i < SW_ARRAY_SIZE(clients); i++) {
        SW_AUTO(char, sw_free)
        entries = sw_asprintf("{\"name\":\"else.example.org\",\"clientConfig\":{\"url\":"
                              "\"https://h/else\"}},{\"name\":\"called.otherwise.org\","
                              "\"clientConfig\":{%s},\"rules\":[" RULE
                              "],\"reinvocationPolicy\":\"IfNeeded\"}",
                              clients[i]);
        expect_all("", entries, &ours, CA,
                   "[{\"op\":\"test\",\"path\":\"/webhooks/1/name\",\"value\":"
                   "\"called.otherwise.org\"}," ADD("1/clientConfig/caBundle", "\"" CA "\"") "]",
                   "called.otherwise.org: caBundle", "");
    }
}

TEST(reports_an_entry_that_is_missing_and_adds_none)
{
    expect_all("", "", &ours, CA, "", "", "ours.example.org");
    expect_all("", "{\"name\":\"other.example.org\",\"clientConfig\":{\"url\":\"https://x\"}}",
               &ours, CA, "", "", "ours.example.org");
}

TEST(mends_several_in_one_patch)
{
    struct parts parts = {RIGHT};
    struct sw_admission more = ours;
    const struct sw_admission *wanted[3] = {&ours, &more, NULL};
    struct sw_admission missing = ours;
    struct scratch s;

    more.webhook_name = "more.example.org";
    missing.webhook_name = "missing.example.org";
    missing.path = "/missing"; /* no two ask the same one */
    wanted[2] = &missing;
    parts.policy = "Never";
    SW_AUTO(char, sw_free) entry = entry_of(&parts);
    SW_AUTO(char, sw_free)
    both = sw_asprintf("{\"name\":\"more.example.org\",\"clientConfig\":{\"url\":\"https://h/ours\""
                       ",\"caBundle\":\"" CA "\"},\"rules\":[" RULE "]},%s",
                       entry);
    mend(&s, "", both, &ours, CA);
    struct sw_webhook_mend all = sw_webhook_mend(
        s.arena, (const struct sw_webhook_object *)s.object, wanted, SW_ARRAY_SIZE(wanted), CA);
    assert_string_equal(all.changes, "ours.example.org: reinvocationPolicy; "
                                     "more.example.org: reinvocationPolicy");
    assert_string_equal(all.missing, "missing.example.org");
    assert_string_equal(
        sw_json_dump(all.patch, s.arena, NULL),
        "[" TEST_NAME("1") "," ADD("1/reinvocationPolicy",
                                   "\"IfNeeded\"") ","
                                                   "{\"op\":\"test\",\"path\":\"/webhooks/0/"
                                                   "name\",\"value\":\"more.example.org\"}," ADD(
                                                       "0/reinvocationPolicy", "\"IfNeeded\"") "]");
    done(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("webhook_mend", leaves_what_is_right_alone),
        CASE("webhook_mend", mends_the_ca),
        CASE("webhook_mend", leaves_the_ca_to_cert_manager_where_it_fills_it_in),
        CASE("webhook_mend", mends_rules),
        CASE("webhook_mend", writes_rules_as_the_module_asked),
        CASE("webhook_mend", mends_the_reinvocation_policy_of_mutating_webhooks),
        CASE("webhook_mend", mends_the_path_of_a_service),
        CASE("webhook_mend", mends_the_path_of_a_url),
        CASE("webhook_mend", finds_the_entry_by_its_name_wherever_it_is),
        CASE("webhook_mend", finds_the_entry_by_its_path_where_it_has_another_name),
        CASE("webhook_mend", reports_an_entry_that_is_missing_and_adds_none),
        CASE("webhook_mend", mends_several_in_one_patch),
    };
    return RUN(tests);
}
