/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeping the webhook configuration: the fake API server has one object, whose version is a number.
 */
#include "runtime/webhook_configuration.h"

#include <errno.h>
#include <slipway/admission.h>
#include <slipway/workloads.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "kube/base64.h"
#include "runtime/leading.h"

#include "../kube/test_pem.h"
#include "../test.h"
#include "fixture.h"

#define PATH "/mutatingwebhookconfigurations"
#define MENDED "webhook configuration mended"
#define RULES                                                                              \
    "[{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"resources\":[\"deployments\"]," \
    "\"operations\":[\"CREATE\",\"UPDATE\"],\"scope\":\"*\"}]"

static const struct sw_admission ours = {
    .path = "/ours",
    .webhook_name = "ours.example.org",
    .kind = &sw_kind_deployment,
    .is_mutating = true,
    .on_create = true,
    .on_update = true,
};

struct hook {
    struct fixture f;
    char *folder, *ca_path;
    struct made_up made_up;
    struct sw_admission admission;
    struct sw_webhook_configuration_options options;
    struct fake_request *watch;
    unsigned version;
    unsigned patches; /* that were answered */
};

/* ---- the process ---- */

static int start(struct sw_instance *self, void *arg)
{
    const struct hook *h = arg;

    return sw_admission_register(self, &h->admission);
}

static void write_ca(struct hook *h, const char *pem)
{
    test_write_file(h->ca_path, pem, strlen(pem));
}

static struct hook *hook_new(const struct sw_core_options *options, const char *ca)
{
    struct hook *h = SW_NEW(struct hook);

    h->folder = test_folder_new();
    h->ca_path = sw_asprintf("%s/ca.crt", h->folder);
    if (ca)
        write_ca(h, ca);
    h->admission = ours;
    h->made_up = (struct made_up){.start = start, .arg = h};
    h->options =
        (struct sw_webhook_configuration_options){.name = "slipway", .cert_folder = h->folder};
    h->version = 10;
    fixture_init(&h->f, options);
    return h;
}

static void open_hook(struct hook *h)
{
    struct sw_error error = {0};

    fixture_add(&h->f, &module_one, &h->made_up);
    if (sw_core_add(h->f.core, &sw_webhook_configuration, &h->options, &error))
        fail_msg("%s", error.text);
    fixture_open(&h->f);
}

static struct hook *begin(const char *ca)
{
    struct hook *h = hook_new(NULL, ca);

    open_hook(h);
    return h;
}

static void done(struct hook *h)
{
    fixture_done(&h->f);
    test_folder_done(h->folder);
    sw_free(h->ca_path);
    sw_free(h);
}

/* ---- the API server ---- */

static const char *base64(const char *text)
{
    static char result[4096];
    struct sw_buf buf;

    sw_buf_init(&buf, sizeof(result));
    assert_int_equal(sw_base64_encode(&buf, text, strlen(text)), 0);
    memcpy(result, buf.bytes, buf.len + 1);
    sw_buf_done(&buf);
    return result;
}

/* The object, at a new version; ca_bundle: base64. */
static char *object_with(struct hook *h, const char *entry, const char *path, const char *ca_bundle)
{
    return sw_asprintf("{\"kind\":\"MutatingWebhookConfiguration\",\"apiVersion\":"
                       "\"admissionregistration.k8s.io/v1\",\"metadata\":{\"name\":\"slipway\","
                       "\"uid\":\"u\",\"resourceVersion\":\"%u\"},\"webhooks\":[{\"name\":\"%s\","
                       "\"clientConfig\":{\"url\":\"https://h%s\",\"caBundle\":\"%s\"},"
                       "\"rules\":" RULES "}]}",
                       ++h->version, entry, path, ca_bundle);
}

static char *object(struct hook *h, const char *ca_bundle)
{
    return object_with(h, "ours.example.org", "/ours", ca_bundle);
}

/* Answers the list that is asked for (item NULL: empty), and opens the watch that follows. */
static void serve(struct hook *h, const char *item)
{
    SW_AUTO(char, sw_free)
    list = sw_asprintf("{\"kind\":\"MutatingWebhookConfigurationList\",\"apiVersion\":"
                       "\"admissionregistration.k8s.io/v1\",\"metadata\":{\"resourceVersion\":"
                       "\"%u\"},\"items\":[%s]}",
                       h->version, item ? item : "");

    fake_answer(fake_the(h->f.transport, PATH "?limit="), 200, NULL, list);
    h->watch = fake_the(h->f.transport, PATH "?watch=");
    fake_head(h->watch, 200, NULL);
    fixture_turn(&h->f);
}

static void serve_object(struct hook *h, const char *ca_bundle)
{
    SW_AUTO(char, sw_free) item = object(h, ca_bundle);

    serve(h, item);
}

/* Time passes; a watch that has ended meanwhile, as they do, is opened again. */
static void advance(struct hook *h, uint64_t ms)
{
    sw_loop_virtual_advance(h->f.loop, ms);
    struct fake_request *next = fake_find(h->f.transport, PATH "?watch=");
    if (!next || next == h->watch)
        return;
    h->watch = next;
    fake_head(h->watch, 200, NULL);
    fixture_turn(&h->f);
}

static void tell(struct hook *h, const char *type, const char *item)
{
    SW_AUTO(char, sw_free) line = sw_asprintf("{\"type\":\"%s\",\"object\":%s}\n", type, item);

    while (!h->watch->is_open)
        advance(h, 10);
    fake_body(h->watch, line);
    fixture_turn(&h->f);
}

/* Somebody writes it; the watch tells. */
static void reset(struct hook *h, const char *ca_bundle)
{
    SW_AUTO(char, sw_free) item = object(h, ca_bundle);

    tell(h, "MODIFIED", item);
}

static struct fake_request *request(struct hook *h, const char *method)
{
    struct fake_request *r = fake_find(h->f.transport, PATH "/slipway");

    return r && strcmp(r->method, method) == 0 ? r : NULL;
}

static struct fake_request *the(struct hook *h, const char *method)
{
    struct fake_request *r = request(h, method);

    if (!r) {
        fail_msg("no %s is under way", method);
        abort();
    }
    return r;
}

static void take_patch(struct hook *h, struct fake_request *r)
{
    SW_AUTO(char, sw_free) item = object(h, base64(TEST_CA_1));

    h->patches++;
    fake_head(r, 200, NULL);
    fake_body(r, item);
    fake_end(r, 0);
}

/* The patch that is waited for, which does what it should. */
static void answer_patch(struct hook *h)
{
    take_patch(h, the(h, "PATCH"));
    fixture_turn(&h->f);
}

static bool is_up_to_date(struct hook *h)
{
    bool is = fixture_shows(&h->f, "slipway_webhook_configuration_up_to_date 1");

    assert_true(is != fixture_shows(&h->f, "slipway_webhook_configuration_up_to_date 0"));
    return is;
}

/* ---- tests ---- */

TEST(watches_the_one_object_by_its_name)
{
    struct hook *h = begin(TEST_CA_1);

    struct fake_request *list = fake_the(h->f.transport, PATH "?limit=");
    assert_string_equal(fake_query(list, "fieldSelector"), "metadata.name=slipway");
    assert_null(fake_find(h->f.transport, "/validatingwebhookconfigurations"));
    serve(h, NULL);
    assert_string_equal(fake_query(h->watch, "fieldSelector"), "metadata.name=slipway");
    done(h);
}

TEST(watches_the_validating_one_where_a_module_validates)
{
    struct hook *h = hook_new(NULL, TEST_CA_1);

    h->admission.is_mutating = false;
    open_hook(h);
    assert_null(fake_find(h->f.transport, PATH));
    fake_the(h->f.transport, "/validatingwebhookconfigurations?limit=");
    done(h);
}

TEST(mends_what_differs_on_the_version_that_it_has_seen)
{
    struct hook *h = begin(TEST_CA_1);

    serve_object(h, "Z2FyYmxlZA==");
    assert_false(is_up_to_date(h));
    SW_AUTO(char, sw_free)
    patch = sw_asprintf(
        "[{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"11\"},"
        "{\"op\":\"test\",\"path\":\"/webhooks/0/name\",\"value\":\"ours.example.org\"},"
        "{\"op\":\"add\",\"path\":\"/webhooks/0/clientConfig/caBundle\",\"value\":\"%s\"}]",
        base64(TEST_CA_1));
    assert_string_equal(the(h, "PATCH")->body, patch);
    assert_string_equal(the(h, "PATCH")->content_type, "application/json-patch+json");
    answer_patch(h);
    assert_true(is_up_to_date(h));
    assert_int_equal(fake_log_count(&h->f.log, MENDED), 1);
    advance(h, 600000);
    assert_null(request(h, "PATCH"));
    done(h);
}

TEST(writes_nothing_where_nothing_differs)
{
    struct hook *h = begin(TEST_CA_1);

    serve_object(h, base64(TEST_CA_1));
    assert_true(is_up_to_date(h));
    reset(h, base64(TEST_CA_1));
    advance(h, 60000);
    assert_null(request(h, "PATCH"));
    assert_int_equal(fake_log_count(&h->f.log, "webhook configuration is up to date"), 1);
    done(h);
}

TEST(is_left_alone_by_followers_who_show_how_it_is)
{
    static const struct sw_lease_options lease = {
        .namespace_ = "ns", .name = "slipway", .identity = "i"};
    static const struct sw_core_options options = {.username = "me", .lease = &lease};
    static const char free_lease[] =
        "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":"
        "\"slipway\",\"namespace\":\"ns\",\"uid\":\"l\",\"resourceVersion\":\"1\"},\"spec\":"
        "{\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,\"leaseTransitions\":3}}";
    struct hook *h = hook_new(&options, TEST_CA_1);

    open_hook(h);
    serve_object(h, "");
    assert_false(is_up_to_date(h));
    assert_null(request(h, "PATCH"));
    reset(h, base64(TEST_CA_1));
    assert_true(is_up_to_date(h));
    reset(h, "");
    assert_null(request(h, "PATCH"));
    assert_false(fake_log_has(&h->f.log, "webhook configuration"));
    fake_answer(fake_the(h->f.transport, "/leases/slipway"), 200, NULL, free_lease);
    struct fake_request *take = fake_the(h->f.transport, "/leases/slipway");
    fake_answer(take, 200, NULL, take->body);
    assert_true(sw_leading_is_on(&h->f.core->leading));
    answer_patch(h);
    assert_true(is_up_to_date(h));
    done(h);
}

TEST(is_not_waited_for_by_readiness_and_leading)
{
    struct hook *h = begin(TEST_CA_1);

    assert_true(sw_core_is_ready(h->f.core));
    assert_true(sw_leading_is_on(&h->f.core->leading));
    fake_answer(fake_the(h->f.transport, PATH "?limit="), 403, NULL,
                "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403}");
    assert_true(sw_core_is_ready(h->f.core));
    assert_false(is_up_to_date(h));
    sw_loop_virtual_advance(h->f.loop, 3000);
    serve_object(h, base64(TEST_CA_1)); /* the permission has been given */
    assert_true(is_up_to_date(h));
    done(h);
}

TEST(that_is_not_there_is_said_once_and_taken_up_when_it_appears)
{
    struct hook *h = begin(TEST_CA_1);

    serve(h, NULL);
    assert_false(is_up_to_date(h));
    advance(h, 60000);
    assert_int_equal(fake_log_count(&h->f.log, "webhook configuration is not there"), 1);
    assert_null(request(h, "POST"));
    SW_AUTO(char, sw_free) made = object(h, "");
    tell(h, "ADDED", made);
    answer_patch(h);
    assert_true(is_up_to_date(h));
    SW_AUTO(char, sw_free) gone = object(h, base64(TEST_CA_1));
    tell(h, "DELETED", gone);
    assert_false(is_up_to_date(h));
    assert_int_equal(fake_log_count(&h->f.log, "webhook configuration is not there"), 2);
    SW_AUTO(char, sw_free) again = object(h, "");
    tell(h, "ADDED", again);
    advance(h, 2000);
    answer_patch(h);
    assert_true(is_up_to_date(h));
    done(h);
}

TEST(that_lacks_an_entry_of_ours_is_said_once_and_gets_none)
{
    struct hook *h = begin(TEST_CA_1);
    SW_AUTO(char, sw_free) one = object_with(h, "other.example.org", "/theirs", "");
    SW_AUTO(char, sw_free) two = object_with(h, "other.example.org", "/theirs", "eA==");

    serve(h, one);
    tell(h, "MODIFIED", two);
    advance(h, 60000);
    assert_false(is_up_to_date(h));
    assert_null(request(h, "PATCH"));
    assert_int_equal(fake_log_count(&h->f.log, "lacks entries of ours"), 1);
    assert_true(fake_log_has(&h->f.log, "ours.example.org"));
    done(h);
}

/* ---- those who change it back ---- */

static void on_request(void *arg, struct fake_request *r)
{
    struct hook *h = arg;

    if (strcmp(r->method, "PATCH") == 0)
        take_patch(h, r);
}

static void answer_by_itself(struct hook *h)
{
    h->f.transport->on_request = on_request;
    h->f.transport->arg = h;
}

TEST(that_is_changed_back_at_once_each_time_is_mended_less_and_less_often)
{
    struct hook *h = begin(TEST_CA_1);
    unsigned resets = 1;

    answer_by_itself(h);
    serve_object(h, "");
    /* An hour, looked at every 10 ms: whatever was mended is undone. */
    for (unsigned at = 0; at < 360000; at++) {
        if (h->patches == resets) {
            reset(h, "");
            resets++;
        }
        advance(h, 10);
    }
    /* From 15 s to 30 s each, after the first few. */
    assert_in_range(h->patches, 3600 / 30, 3600 / 15 + 10);
    assert_int_equal(fake_log_count(&h->f.log, "somebody changes it back again and again"), 1);
    assert_in_range(fake_log_count(&h->f.log, MENDED), 1, 3 + h->patches);
    done(h);
}

TEST(that_is_changed_back_every_minute_is_mended_at_once)
{
    struct hook *h = begin(TEST_CA_1);

    answer_by_itself(h);
    serve_object(h, "");
    for (unsigned at = 1; at <= 120; at++) {
        assert_int_equal(h->patches, at);
        for (unsigned i = 0; i < 60; i++)
            advance(h, 1000);
        reset(h, "");
    }
    done(h);
}

TEST(that_is_changed_now_and_then_is_mended_at_once_and_said_each_time)
{
    struct hook *h = begin(TEST_CA_1);

    answer_by_itself(h);
    serve_object(h, "");
    for (unsigned at = 1; at <= 5; at++) {
        assert_int_equal(h->patches, at);
        assert_int_equal(fake_log_count(&h->f.log, MENDED), at);
        /* Bookmarks keep the watch alive. */
        for (unsigned i = 0; i < 10; i++) {
            advance(h, 30000);
        }
        reset(h, "");
    }
    assert_false(fake_log_has(&h->f.log, "again and again"));
    done(h);
}

/* ---- answers ---- */

TEST(that_may_not_be_patched_is_said_once_and_tried_rarely)
{
    struct hook *h = begin(TEST_CA_1);
    unsigned tries = 0;

    serve_object(h, "");
    for (unsigned at = 0; at < 1200; at++) {
        struct fake_request *r = request(h, "PATCH");
        if (r) {
            fake_answer(r, 403, NULL,
                        "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no, says "
                        "RBAC\",\"code\":403}");
            tries++;
        }
        advance(h, 1000);
    }
    assert_in_range(tries, 5, 15);
    assert_int_equal(fake_log_count(&h->f.log, "our role needs the verb patch"), 1);
    assert_true(fake_log_has(&h->f.log, "no, says RBAC"));
    assert_false(is_up_to_date(h));
    for (unsigned at = 0; at < 600 && !request(h, "PATCH"); at++)
        advance(h, 1000);
    answer_patch(h);
    assert_true(is_up_to_date(h));
    done(h);
}

static void check_read_again(int status, const char *body)
{
    struct hook *h = begin(TEST_CA_1);

    serve_object(h, "");
    if (status)
        fake_answer(the(h, "PATCH"), status, NULL, body);
    else
        fake_break(the(h, "PATCH"), -ECONNRESET);
    SW_AUTO(char, sw_free) newer = object(h, "eA==");
    fake_answer(the(h, "GET"), 200, NULL, newer);
    advance(h, 1000);
    assert_non_null(
        strstr(the(h, "PATCH")->body, "\"value\":\"12\"")); /* the version that was read */
    answer_patch(h);
    assert_true(is_up_to_date(h));
    done(h);
}

TEST(that_has_changed_meanwhile_is_read_again)
{
    check_read_again(422, "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Invalid\","
                          "\"message\":\"the server rejected our request: testing path "
                          "/metadata/resourceVersion: test failed\",\"code\":422}");
    check_read_again(422, "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Invalid\","
                          "\"message\":\"the server rejected our request due to an error in our "
                          "request\",\"code\":422}");
    check_read_again(409, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"code\":409}");
}

TEST(is_read_again_where_no_answer_came)
{
    check_read_again(0, NULL);
}

TEST(that_was_mended_by_a_patch_whose_answer_was_lost_is_not_written_twice)
{
    struct hook *h = begin(TEST_CA_1);

    serve_object(h, "");
    fake_break(the(h, "PATCH"), -ECONNRESET);
    SW_AUTO(char, sw_free) newer = object(h, base64(TEST_CA_1));
    fake_answer(the(h, "GET"), 200, NULL, newer);
    advance(h, 60000);
    assert_null(request(h, "PATCH"));
    assert_true(is_up_to_date(h));
    done(h);
}

TEST(stops_while_a_patch_is_under_way)
{
    struct hook *h = begin(TEST_CA_1);

    serve_object(h, "");
    the(h, "PATCH");
    done(h);
}

/* ---- the CA ---- */

enum { POLL_MS = 10000 }; /* a virtual loop has no inotify */

TEST(without_a_ca_leaves_the_bundle_as_it_is)
{
    struct hook *h = begin(NULL);

    serve_object(h, "Z2FyYmxlZA==");
    assert_true(is_up_to_date(h));
    assert_null(request(h, "PATCH"));
    assert_int_equal(fake_log_count(&h->f.log, "caBundle stays as it is"), 1);
    write_ca(h, TEST_CA_1); /* it comes later */
    advance(h, POLL_MS);
    assert_false(is_up_to_date(h));
    answer_patch(h);
    assert_true(is_up_to_date(h));
    done(h);
}

TEST(an_empty_ca_is_none)
{
    struct hook *h = begin("");

    serve_object(h, "Z2FyYmxlZA==");
    assert_true(is_up_to_date(h));
    assert_null(request(h, "PATCH"));
    done(h);
}

TEST(a_new_ca_is_written_and_one_that_cannot_be_used_is_not)
{
    static const char *const bad[] = {
        "not a certificate", TEST_CA_2 TEST_CLIENT_1_KEY,
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"};
    struct hook *h = begin(TEST_CA_1);

    serve_object(h, base64(TEST_CA_1));
    for (unsigned i = 0; i < SW_ARRAY_SIZE(bad); i++) {
        write_ca(h, bad[i]);
        advance(h, POLL_MS);
        assert_int_equal(fake_log_count(&h->f.log, "CA of the webhook cannot be used, keeping"),
                         i + 1);
        assert_null(request(h, "PATCH"));
        assert_true(is_up_to_date(h));
    }
    assert_false(fake_log_has(&h->f.log, "MIGH")); /* of the key */
    write_ca(h, TEST_CA_2 TEST_CA_1);
    advance(h, POLL_MS);
    assert_false(is_up_to_date(h));
    assert_non_null(strstr(the(h, "PATCH")->body, base64(TEST_CA_2 TEST_CA_1)));
    done(h);
}

/* ---- starting ---- */

static int start_two(struct sw_instance *self, void *arg)
{
    struct hook *h = arg;
    struct sw_admission second = h->admission;

    second.path = "/second";
    assert_int_equal(sw_admission_register(self, &second), 0);
    return start(self, arg);
}

TEST(refuses_two_paths_for_one_webhook)
{
    struct hook *h = hook_new(NULL, TEST_CA_1);
    struct sw_error error = {0};

    h->made_up.start = start_two;
    fixture_add(&h->f, &module_one, &h->made_up);
    assert_int_equal(sw_core_add(h->f.core, &sw_webhook_configuration, &h->options, &error),
                     -EEXIST);
    assert_non_null(strstr(error.text, "two paths are registered for the webhook ours.example"));
    done(h);
}

TEST(needs_permissions_for_that_object_alone)
{
    static const struct sw_core_options options = {.username = "me", .checks_permissions = true};
    static const char *const verbs[] = {"list", "watch", "get", "patch"};
    struct hook *h = hook_new(&options, TEST_CA_1);
    unsigned found[4] = {0};

    open_hook(h);
    for (unsigned i = 0; i < h->f.transport->count; i++) {
        const struct fake_request *r = h->f.transport->requests[i];
        if (!strstr(r->target, "selfsubjectaccessreviews"))
            continue;
        for (unsigned v = 0; v < SW_ARRAY_SIZE(verbs); v++) {
            SW_AUTO(char, sw_free)
            what = sw_asprintf("{\"verb\":\"%s\",\"group\":\"admissionregistration.k8s.io\","
                               "\"resource\":\"mutatingwebhookconfigurations\","
                               "\"name\":\"slipway\"}",
                               verbs[v]);
            found[v] += strstr(r->body, what) != NULL;
        }
    }
    for (unsigned v = 0; v < SW_ARRAY_SIZE(verbs); v++)
        assert_int_equal(found[v], 1);
    done(h);
}

/* ---- several modules, both objects ---- */

static const struct sw_kind widgets = {
    .group = "example.org",
    .version = "v1alpha1",
    .kind = "Widget",
    .plural = "widgets",
    .size = sizeof(struct sw_object),
};

static int start_more(struct sw_instance *self, void *arg)
{
    struct sw_admission more = ours;

    (void)arg;
    more.path = "/sets";
    more.webhook_name = "sets.example.org";
    more.kind = &sw_kind_stateful_set;
    int code = sw_admission_register(self, &more);
    if (code)
        return code;
    more.path = "/validate";
    more.webhook_name = "widgets.example.org";
    more.kind = &widgets;
    more.is_mutating = false;
    return sw_admission_register(self, &more);
}

static void serve_one(struct hook *h, const char *kind, const char *path, const char *entries)
{
    SW_AUTO(char, sw_free)
    list = sw_asprintf("{\"kind\":\"%sList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[{"
                       "\"metadata\":{\"name\":\"slipway\",\"uid\":\"u\",\"resourceVersion\":"
                       "\"5\"},\"webhooks\":[%s]}]}",
                       kind, entries);
    SW_AUTO(char, sw_free) limit = sw_asprintf("%s?limit=", path);
    SW_AUTO(char, sw_free) watch = sw_asprintf("%s?watch=", path);

    fake_answer(fake_the(h->f.transport, limit), 200, NULL, list);
    fake_head(fake_the(h->f.transport, watch), 200, NULL);
    fixture_turn(&h->f);
}

TEST(of_several_modules_is_kept_in_both_objects)
{
    struct hook *h = hook_new(NULL, NULL); /* no CA: caBundle stays */
    struct made_up more = {.start = start_more};
    struct sw_error error = {0};

    fixture_add(&h->f, &module_one, &h->made_up);
    fixture_add(&h->f, &module_two, &more);
    assert_int_equal(sw_core_add(h->f.core, &sw_webhook_configuration, &h->options, &error), 0);
    fixture_open(&h->f);
    serve_one(h, "MutatingWebhookConfiguration", "/mutatingwebhookconfigurations",
              "{\"name\":\"sets.example.org\",\"clientConfig\":{\"url\":\"https://h/sets\"},"
              "\"rules\":" RULES "},"
              "{\"name\":\"ours.example.org\",\"clientConfig\":{\"url\":\"https://h/ours\"},"
              "\"rules\":" RULES "}");
    /* The first one's rules speak of another kind. */
    struct fake_request *patch = fake_the(h->f.transport, "/mutatingwebhookconfigurations/slipway");
    assert_non_null(strstr(patch->body, "\"value\":\"sets.example.org\""));
    assert_non_null(strstr(patch->body, "\"/webhooks/0/rules\""));
    assert_non_null(strstr(patch->body, "\"resources\":[\"statefulsets\"]"));
    assert_null(strstr(patch->body, "/webhooks/1"));
    assert_false(is_up_to_date(h));

    serve_one(
        h, "ValidatingWebhookConfiguration", "/validatingwebhookconfigurations",
        "{\"name\":\"widgets.example.org\",\"clientConfig\":{\"service\":{\"name\":\"s\",\"path\":"
        "\"/wrong\"}},\"rules\":[]}");
    patch = fake_the(h->f.transport, "/validatingwebhookconfigurations/slipway");
    assert_non_null(strstr(patch->body, "\"/webhooks/0/clientConfig/service/path\""));
    assert_non_null(strstr(patch->body, "\"apiGroups\":[\"example.org\"]"));
    assert_non_null(strstr(patch->body, "\"apiVersions\":[\"v1alpha1\"]"));
    assert_null(strstr(patch->body, "reinvocationPolicy"));
    /* Each is written by itself; only both together are right. */
    fake_answer(patch, 200, NULL,
                "{\"metadata\":{\"name\":\"slipway\",\"uid\":\"u\",\"resourceVersion\":\"6\"},"
                "\"webhooks\":[{\"name\":\"widgets.example.org\",\"clientConfig\":{\"service\":{"
                "\"name\":\"s\","
                "\"path\":\"/validate\"}},\"rules\":[{\"apiGroups\":[\"example.org\"],"
                "\"apiVersions\":[\"v1alpha1\"],\"resources\":[\"widgets\"],\"operations\":["
                "\"CREATE\",\"UPDATE\"],\"scope\":\"Namespaced\"}]}]}");
    fixture_turn(&h->f);
    assert_false(is_up_to_date(h));
    fake_answer(fake_the(h->f.transport, "/mutatingwebhookconfigurations/slipway"), 200, NULL,
                "{\"metadata\":{\"name\":\"slipway\",\"uid\":\"u\",\"resourceVersion\":\"7\"},"
                "\"webhooks\":[{\"name\":\"sets.example.org\",\"clientConfig\":{\"url\":\"https://"
                "h/sets\"},"
                "\"rules\":[{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"v1\"],\"resources\":["
                "\"statefulsets\"],\"operations\":[\"CREATE\",\"UPDATE\"],\"scope\":\"*\"}]},"
                "{\"name\":\"ours.example.org\",\"clientConfig\":{\"url\":\"https://h/ours\"},"
                "\"rules\":" RULES "}]}");
    fixture_turn(&h->f);
    assert_true(is_up_to_date(h));
    done(h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("webhook_configuration", watches_the_one_object_by_its_name),
        CASE("webhook_configuration", watches_the_validating_one_where_a_module_validates),
        CASE("webhook_configuration", mends_what_differs_on_the_version_that_it_has_seen),
        CASE("webhook_configuration", writes_nothing_where_nothing_differs),
        CASE("webhook_configuration", is_left_alone_by_followers_who_show_how_it_is),
        CASE("webhook_configuration", is_not_waited_for_by_readiness_and_leading),
        CASE("webhook_configuration", that_is_not_there_is_said_once_and_taken_up_when_it_appears),
        CASE("webhook_configuration", that_lacks_an_entry_of_ours_is_said_once_and_gets_none),
        CASE("webhook_configuration",
             that_is_changed_back_at_once_each_time_is_mended_less_and_less_often),
        CASE("webhook_configuration", that_is_changed_back_every_minute_is_mended_at_once),
        CASE("webhook_configuration",
             that_is_changed_now_and_then_is_mended_at_once_and_said_each_time),
        CASE("webhook_configuration", that_may_not_be_patched_is_said_once_and_tried_rarely),
        CASE("webhook_configuration", that_has_changed_meanwhile_is_read_again),
        CASE("webhook_configuration", is_read_again_where_no_answer_came),
        CASE("webhook_configuration",
             that_was_mended_by_a_patch_whose_answer_was_lost_is_not_written_twice),
        CASE("webhook_configuration", stops_while_a_patch_is_under_way),
        CASE("webhook_configuration", without_a_ca_leaves_the_bundle_as_it_is),
        CASE("webhook_configuration", an_empty_ca_is_none),
        CASE("webhook_configuration", a_new_ca_is_written_and_one_that_cannot_be_used_is_not),
        CASE("webhook_configuration", refuses_two_paths_for_one_webhook),
        CASE("webhook_configuration", needs_permissions_for_that_object_alone),
        CASE("webhook_configuration", of_several_modules_is_kept_in_both_objects),
    };
    return RUN(tests);
}
