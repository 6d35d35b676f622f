/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Secret with certificates of our own: who writes it when, and what is served. Mostly the fake
 * API server has no webhook configuration, so nobody is trusted yet; self_signed_plan has the
 * steps.
 */
#include "runtime/self_signed.h"

#include <slipway/admission.h>

#include "base/error.h"
#include "base/util.h"
#include "net/tls.h"
#include "runtime/leading.h"
#include "runtime/webhook_configuration.h"

#include "../test.h"
#include "fixture.h"

#define SECRETS "/namespaces/ns/secrets"

static const struct sw_admission ours = {
    .path = "/ours",
    .webhook_name = "ours.example.org",
    .kind = &sw_kind_deployment,
    .is_mutating = true,
    .on_create = true,
};

struct own {
    struct fixture f;
    struct made_up made_up;
    struct sw_self_signed_options signed_;
    struct sw_webhook_configuration_options options;
    struct fake_request *watch;
    unsigned version;
    unsigned pairs; /* that were to be served */
};

static int start(struct sw_instance *self, void *arg)
{
    (void)arg;
    return sw_admission_register(self, &ours);
}

static void on_pair(void *arg, struct sw_tls_config *config)
{
    struct own *own = arg;

    assert_non_null(config);
    own->pairs++;
}

/* The webhook configuration; "": it is not there, and is known not to be. */
static void serve_configurations(struct own *own, const char *item)
{
    SW_AUTO(char, sw_free)
    list = sw_asprintf("{\"kind\":\"MutatingWebhookConfigurationList\",\"apiVersion\":"
                       "\"admissionregistration.k8s.io/v1\",\"metadata\":{\"resourceVersion\":"
                       "\"1\"},\"items\":[%s]}",
                       item);

    fake_answer(fake_the(own->f.transport, "/mutatingwebhookconfigurations?limit="), 200, NULL,
                list);
    fake_head(fake_the(own->f.transport, "/mutatingwebhookconfigurations?watch="), 200, NULL);
    fixture_turn(&own->f);
}

static struct own *begin_beside(const char *configuration, const struct sw_core_options *options)
{
    struct own *own = SW_NEW(struct own);
    struct sw_error error = {0};

    own->made_up = (struct made_up){.start = start};
    own->signed_ = (struct sw_self_signed_options){.namespace_ = "ns",
                                                   .secret_name = "certificates",
                                                   .service_name = "hook",
                                                   .times = sw_signed_times,
                                                   .on_pair = on_pair,
                                                   .arg = own};
    own->options =
        (struct sw_webhook_configuration_options){.name = "slipway", .self_signed = &own->signed_};
    own->version = 10;
    fixture_init(&own->f, options);
    fixture_add(&own->f, &module_one, &own->made_up);
    if (sw_core_add(own->f.core, &sw_webhook_configuration, &own->options, &error))
        fail_msg("%s", error.text);
    fixture_open(&own->f);
    serve_configurations(own, configuration);
    return own;
}

static struct own *begin(const struct sw_core_options *options)
{
    return begin_beside("", options);
}

static void done(struct own *own)
{
    fixture_done(&own->f);
    sw_free(own);
}

/* The Secret with the data of a body that was sent, at a new version. */
static char *secret_of(struct own *own, const char *body)
{
    const char *data = strstr(body, "\"data\":");

    assert_non_null(data);
    return sw_asprintf("{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                       "\"certificates\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":"
                       "\"%u\"},%s",
                       ++own->version, data);
}

static void serve_secrets(struct own *own, const char *item)
{
    SW_AUTO(char, sw_free)
    list = sw_asprintf("{\"kind\":\"SecretList\",\"apiVersion\":\"v1\",\"metadata\":{"
                       "\"resourceVersion\":\"%u\"},\"items\":[%s]}",
                       own->version, item);

    struct fake_request *r = fake_the(own->f.transport, SECRETS "?limit=");
    assert_string_equal(fake_query(r, "fieldSelector"), "metadata.name=certificates");
    fake_answer(r, 200, NULL, list);
    own->watch = fake_the(own->f.transport, SECRETS "?watch=");
    fake_head(own->watch, 200, NULL);
    fixture_turn(&own->f);
}

static void tell(struct own *own, const char *type, const char *item)
{
    SW_AUTO(char, sw_free) line = sw_asprintf("{\"type\":\"%s\",\"object\":%s}\n", type, item);

    fake_body(own->watch, line);
    fixture_turn(&own->f);
}

static struct fake_request *request(struct own *own, const char *method, const char *path)
{
    struct fake_request *r = fake_find(own->f.transport, path);

    return r && strcmp(r->method, method) == 0 ? r : NULL;
}

static struct fake_request *the(struct own *own, const char *method, const char *path)
{
    struct fake_request *r = request(own, method, path);

    if (!r) {
        fail_msg("no %s is under way", method);
        abort();
    }
    return r;
}

static struct fake_request *create(struct own *own)
{
    return the(own, "POST", SECRETS "?fieldManager=");
}

/* What is created is as it should be; returns the object. */
static char *begin_with(struct own *own)
{
    serve_secrets(own, "");
    struct fake_request *r = create(own);
    char *made = secret_of(own, r->body);
    fake_answer(r, 201, NULL, made);
    return made;
}

TEST(is_made_where_there_is_none_and_what_is_in_it_is_served)
{
    struct own *own = begin(NULL);

    serve_secrets(own, "");
    struct fake_request *r = create(own);
    assert_non_null(strstr(r->body, "\"type\":\"kubernetes.io/tls\""));
    assert_non_null(strstr(r->body, "\"name\":\"certificates\""));
    assert_int_equal(own->pairs, 0);
    SW_AUTO(char, sw_free) made = secret_of(own, r->body);
    fake_answer(r, 201, NULL, made);
    assert_int_equal(own->pairs, 1);
    sw_loop_virtual_advance(own->f.loop, 60000);
    assert_null(request(own, "PATCH", SECRETS "/certificates"));
    assert_int_equal(own->pairs, 1);
    assert_false(fake_log_has(&own->f.log, "PRIVATE"));
    assert_false(fake_log_has(&own->f.log, "LS0t")); /* the beginning of PEM in Base64 */
    done(own);
}

TEST(that_another_has_made_meanwhile_is_read)
{
    struct own *own = begin(NULL);

    serve_secrets(own, "");
    struct fake_request *r = create(own);
    SW_AUTO(char, sw_free) theirs = secret_of(own, r->body);
    fake_answer(r, 409, NULL, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409}");
    assert_int_equal(own->pairs, 0);
    serve_secrets(own, theirs);
    assert_int_equal(own->pairs, 1);
    sw_loop_virtual_advance(own->f.loop, 60000);
    assert_null(request(own, "POST", SECRETS "?fieldManager="));
    assert_null(request(own, "PATCH", SECRETS "/certificates"));
    done(own);
}

TEST(is_served_by_followers_who_write_nothing)
{
    static const struct sw_lease_options lease = {
        .namespace_ = "ns", .name = "slipway", .identity = "i"};
    static const struct sw_core_options options = {.username = "me", .lease = &lease};
    struct own *leader = begin(NULL);
    SW_AUTO(char, sw_free) made = begin_with(leader);
    struct own *own = begin(&options);

    serve_secrets(own, "");
    assert_null(request(own, "POST", SECRETS "?fieldManager="));
    tell(own, "ADDED", made);
    assert_int_equal(own->pairs, 1);
    /* What takes it away takes nothing from those who serve. */
    tell(own, "DELETED", made);
    assert_int_equal(own->pairs, 1);
    assert_null(request(own, "POST", SECRETS "?fieldManager="));
    done(own);
    done(leader);
}

TEST(that_is_deleted_is_made_anew_with_the_pair_that_is_served)
{
    struct own *own = begin(NULL);
    SW_AUTO(char, sw_free) made = begin_with(own);
    const char *pair = strstr(made, "\"tls.crt\":"), *rest = strstr(made, ",\"ca.crt\"");

    sw_loop_virtual_advance(own->f.loop, 3000);
    tell(own, "DELETED", made);
    struct fake_request *r = create(own);
    SW_AUTO(char, sw_free) same = sw_strndup(pair, (size_t)(rest - pair));
    assert_non_null(strstr(r->body, same));
    assert_null(strstr(r->body, rest)); /* another authority, before the old one */
    assert_int_equal(own->pairs, 1);
    done(own);
}

TEST(is_renewed_on_the_version_that_was_seen)
{
    struct own *own = begin(NULL);
    SW_AUTO(char, sw_free) made = begin_with(own);

    /* Two thirds of a year are 243 days and 8 hours; it looks at the clock once an hour. */
    sw_loop_virtual_shift_wall(own->f.loop, INT64_C(243) * 24 * 3600 * 1000000);
    for (unsigned at = 0; at < 400; at++)
        sw_loop_virtual_advance(own->f.loop, 10000);
    assert_null(request(own, "PATCH", SECRETS "/certificates"));
    sw_loop_virtual_shift_wall(own->f.loop, INT64_C(8) * 3600 * 1000000);
    for (unsigned at = 0; at < 400 && !request(own, "PATCH", SECRETS "/certificates"); at++)
        sw_loop_virtual_advance(own->f.loop, 10000);
    struct fake_request *r = the(own, "PATCH", SECRETS "/certificates");
    assert_string_equal(r->content_type, "application/merge-patch+json");
    assert_non_null(strstr(r->body, "{\"metadata\":{\"resourceVersion\":\"11\"},"));
    SW_AUTO(char, sw_free) renewed = secret_of(own, r->body);
    assert_non_null(strstr(renewed, strstr(made, ",\"ca.crt\""))); /* by the same authority */
    fake_answer(r, 200, NULL, renewed);
    assert_int_equal(own->pairs, 2);
    assert_true(fake_log_has(&own->f.log, "webhook certificate replaced"));
    done(own);
}

TEST(that_may_not_be_written_is_said_once)
{
    struct own *own = begin(NULL);

    serve_secrets(own, "");
    for (unsigned at = 0; at < 3; at++) {
        fake_answer(
            create(own), 403, NULL,
            "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\",\"code\":403}");
        sw_loop_virtual_advance(own->f.loop, 31000);
    }
    assert_int_equal(fake_log_count(&own->f.log, "certificates cannot be written"), 1);
    assert_int_equal(fake_log_count(&own->f.log, "make an empty one"), 1);
    assert_int_equal(own->pairs, 0);
    done(own);
}

TEST(is_not_made_before_it_is_known_whether_there_is_one)
{
    struct own *own = begin(NULL);

    assert_null(request(own, "POST", SECRETS "?fieldManager="));
    serve_secrets(own, "");
    create(own);
    done(own); /* while it is under way */
}

TEST(that_nobody_will_trust_since_cert_manager_says_who_is_is_warned_of_once)
{
    struct own *own = begin_beside(
        "{\"kind\":\"MutatingWebhookConfiguration\",\"apiVersion\":"
        "\"admissionregistration.k8s.io/v1\",\"metadata\":{\"name\":\"slipway\",\"uid\":\"w\","
        "\"resourceVersion\":\"1\",\"annotations\":{\"cert-manager.io/inject-ca-from\":\"a/b\"}},"
        "\"webhooks\":[{\"name\":\"ours.example.org\",\"reinvocationPolicy\":\"Never\","
        "\"clientConfig\":{\"url\":\"https://h/ours\"},\"rules\":[{\"apiGroups\":[\"apps\"],"
        "\"apiVersions\":[\"v1\"],\"operations\":[\"CREATE\"],\"resources\":[\"deployments\"],"
        "\"scope\":\"Namespaced\"}]}]}",
        NULL);

    serve_secrets(own, "");
    sw_loop_virtual_advance(own->f.loop, 400000);
    assert_int_equal(fake_log_count(&own->f.log, "nobody will trust the certificates"), 1);
    assert_false(fake_log_has(&own->f.log, "webhook configuration is up to date"));
    assert_true(fixture_shows(&own->f, "slipway_webhook_configuration_up_to_date 0"));
    done(own);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("self_signed: the Secret", is_made_where_there_is_none_and_what_is_in_it_is_served),
        CASE("self_signed: the Secret", that_another_has_made_meanwhile_is_read),
        CASE("self_signed: the Secret", is_served_by_followers_who_write_nothing),
        CASE("self_signed: the Secret", that_is_deleted_is_made_anew_with_the_pair_that_is_served),
        CASE("self_signed: the Secret", is_renewed_on_the_version_that_was_seen),
        CASE("self_signed: the Secret", that_may_not_be_written_is_said_once),
        CASE("self_signed: the Secret", is_not_made_before_it_is_known_whether_there_is_one),
        CASE("self_signed: the Secret",
             that_nobody_will_trust_since_cert_manager_says_who_is_is_warned_of_once),
    };
    return RUN(tests);
}
