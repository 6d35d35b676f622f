/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the API server reach the webhook, and trust it? Its own opinion is asked for, by a dry run;
 * where it does not, what can be seen from here tells why.
 */
#include <string.h>

#include <slipway/arbiter.h>
#include <slipway/json.h>
#include <slipway/selector.h>

#include "base/loop.h"
#include "base/util.h"
#include "doctor_ask.h"
#include "kube/base64.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "net/url.h"
#include "world.h"

#define WEBHOOKS "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
#define VALIDATING "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

enum { TRY_MS = 10000 };

/* A Deployment that no coordination selects, with an annotation that slipway takes off whatever is
 * new: if it is still there, slipway was not asked. */
static struct sw_json *probe_of(struct ks_doctor *doctor, const struct sw_json *webhook)
{
    struct sw_arena *arena = doctor->session->arena;
    struct sw_json *probe = sw_json_object(arena);
    struct sw_json *metadata = sw_json_set_object(probe, "metadata");
    struct sw_json *spec = sw_json_set_object(probe, "spec");
    struct sw_json *template = sw_json_set_object(spec, "template");
    const struct sw_json *wanted = sw_json_at(webhook, "objectSelector", "matchLabels", NULL);

    sw_json_set_string(probe, "apiVersion", "apps/v1");
    sw_json_set_string(probe, "kind", "Deployment");
    sw_json_set_string(metadata, "generateName", "slipway-doctor-");
    if (wanted)
        sw_json_set(metadata, "labels", (struct sw_json *)(uintptr_t)wanted);
    sw_json_set_string(sw_json_set_object(metadata, "annotations"), SW_FENCE, "doctor");
    sw_json_set_int(spec, "replicas", 0);
    sw_json_set_string(sw_json_set_object(sw_json_set_object(spec, "selector"), "matchLabels"),
                       "slipway-doctor", "probe");
    sw_json_set_string(sw_json_set_object(sw_json_set_object(template, "metadata"), "labels"),
                       "slipway-doctor", "probe");
    struct sw_json *container = sw_json_append_object(
        sw_json_set_array(sw_json_set_object(template, "spec"), "containers"));
    sw_json_set_string(container, "name", "probe");
    sw_json_set_string(container, "image", "slipway-doctor.invalid/probe");
    return probe;
}

/* Only metadata. */
static const struct sw_bind no_fields[] = {SW_BIND_END};
static const struct sw_kind kind_namespace = {
    .group = "",
    .version = "v1",
    .kind = "Namespace",
    .plural = "namespaces",
    .is_cluster_scoped = true,
    .size = sizeof(struct sw_object),
    .fields = no_fields,
};

static struct sw_selector *namespace_selector(const struct sw_json *webhook, struct sw_arena *arena)
{
    const struct sw_json *json = sw_json_get(webhook, "namespaceSelector");
    const char *text = json ? sw_json_dump(json, arena, NULL) : "{}";
    struct sw_selector *selector;
    char why[256];

    return sw_selector_parse(text, strlen(text), &selector, why, sizeof(why)) ? NULL : selector;
}

/* One that the webhook is asked for, the session's own first; NULL: there is none, or we may not
 * see them. */
static const char *probe_namespace(struct ks_doctor *doctor, const struct sw_json *webhook)
{
    struct ks_session *session = doctor->session;
    const struct sw_object *const *namespaces;
    struct ks_answer answer;
    const char *found = NULL;
    size_t count;

    if (!ks_list(session, &kind_namespace, NULL, &namespaces, &count, &answer)) {
        ks_doctor_unknown(doctor, "webhook", "namespaces", &answer);
        return NULL;
    }
    struct sw_selector *selector = namespace_selector(webhook, session->arena);
    for (size_t i = 0; i < count; i++) {
        bool is_own = strcmp(namespaces[i]->name, ks_namespace(session)) == 0;
        if (namespaces[i]->deleted_us == 0 && (!found || is_own) &&
            sw_selector_matches(selector, &namespaces[i]->labels))
            found = namespaces[i]->name;
    }
    sw_selector_free(selector);
    if (!found)
        ks_find(&doctor->findings, KS_WARNING, "webhook", "see its namespaceSelector",
                "the webhook is asked in none of %zu namespaces", count);
    return found;
}

struct trial {
    struct sw_loop *loop;
    struct sw_error error;
    int code;
    bool is_over;
};

static void on_trial_end(void *arg, int code, const struct sw_error *error)
{
    struct trial *trial = arg;

    trial->code = code;
    if (error)
        trial->error = *error;
    trial->is_over = true;
    sw_loop_stop(trial->loop);
}

/* From here, as the API server would from there: the same address, the same CA. "": it answers. */
static const char *try_url(struct ks_doctor *doctor, const char *address, const char *ca_pem)
{
    static const struct sw_http_exchange_events events = {.on_end = on_trial_end};
    struct ks_session *session = doctor->session;
    struct trial trial = {.loop = session->loop};
    const struct sw_tls_client_options tls = {.ca_pem = ca_pem};
    struct sw_http_client_options options = {.connect_timeout_ms = TRY_MS};
    struct sw_http_request request = {.method = "GET", .head_timeout_ms = TRY_MS};
    struct sw_http_client *client = NULL;
    struct sw_http_exchange *exchange;
    struct sw_url url;

    if (sw_url_parse(address, &url, &trial.error))
        return sw_arena_strdup(session->arena, trial.error.text);
    trial.code = sw_tls_client_config_new(&tls, &options.tls, &trial.error);
    options.host = url.host;
    options.port = url.port;
    request.target = url.path[0] ? url.path : "/";
    if (!trial.code)
        trial.code = sw_http_client_open(session->loop, &options, &session->log, &client);
    if (!trial.code)
        trial.code = sw_http_send(client, &request, &events, &trial, &exchange);
    while (!trial.code && !trial.is_over)
        sw_loop_run(session->loop);
    sw_http_client_close(client);
    sw_tls_config_unref(options.tls);
    sw_url_done(&url);
    return !trial.code
               ? ""
               : sw_arena_strdup(session->arena,
                                 trial.error.text[0] ? trial.error.text : sw_strerror(trial.code));
}

static bool has_ready_pod(const struct sw_json *endpoints)
{
    const struct sw_json *subsets = sw_json_get(endpoints, "subsets");

    for (size_t i = 0; i < sw_json_size(subsets); i++)
        if (sw_json_size(sw_json_get(sw_json_element(subsets, i), "addresses")) > 0)
            return true;
    return false;
}

/* Is there a Secret of the Service's name, as slipway's chart has it, with another authority? */
static bool has_other_authority(struct ks_doctor *doctor, const struct sw_json *service,
                                const char *ca_pem)
{
    struct ks_session *session = doctor->session;
    const char *path =
        sw_arena_printf(session->arena, "/api/v1/namespaces/%s/secrets/%s",
                        ks_text_at(service, "namespace"), ks_text_at(service, "name"));
    struct ks_answer answer;
    const struct sw_json *secret = ks_get(session, path, &answer);
    const char *encoded = ks_text_at(sw_json_get(secret, "data"), "ca.crt");
    char *pem;
    size_t len;

    if (!encoded[0] || sw_base64_decode(encoded, strlen(encoded), &pem, &len))
        return false;
    while (len > 0 && (pem[len - 1] == '\n' || pem[len - 1] == '\r'))
        pem[--len] = '\0';
    bool is_other = !strstr(ca_pem, pem);
    sw_free(pem);
    return is_other;
}

/* Of a Service: is anybody behind it, and is the authority the one that it uses? "": as far as may
 * be looked at. */
static const char *try_service(struct ks_doctor *doctor, const struct sw_json *service,
                               const char *ca_pem)
{
    struct ks_session *session = doctor->session;
    const char *namespace_ = ks_text_at(service, "namespace"), *name = ks_text_at(service, "name");
    const char *path =
        sw_arena_printf(session->arena, "/api/v1/namespaces/%s/endpoints/%s", namespace_, name);
    struct ks_answer answer;
    const struct sw_json *endpoints = ks_get(session, path, &answer);

    if (!has_ready_pod(endpoints) && (endpoints || answer.status == 404))
        return sw_arena_printf(session->arena, "no ready Pod is behind the Service %s/%s",
                               namespace_, name);
    if (has_other_authority(doctor, service, ca_pem))
        return sw_arena_printf(session->arena,
                               "caBundle does not have the authority of the Secret %s/%s",
                               namespace_, name);
    return "";
}

/* Why the API server did not get an answer, as far as it can be seen from here. */
static void find_why_not(struct ks_doctor *doctor, const struct sw_json *webhook,
                         const char *ca_pem, const char *said)
{
    const struct sw_json *client = sw_json_get(webhook, "clientConfig");
    const struct sw_json *service = sw_json_get(client, "service");
    const char *url = ks_text_at(client, "url"), *why = "";

    if (said[0])
        why = said;
    else if (!ca_pem)
        why = "caBundle cannot be used";
    else if (service)
        why = try_service(doctor, service, ca_pem);
    else
        why = try_url(doctor, url, ca_pem);
    ks_find(&doctor->findings, KS_BAD, "webhook",
            "without it a change rolls before slipway can hold it. Does slipway run, may the API "
            "server reach it (firewall, NetworkPolicy), and is caBundle the CA of its certificate?",
            "the API server does not get answers from the webhook%s%s", why[0] ? ": " : "", why);
}

static void check_answers(struct ks_doctor *doctor, const struct sw_json *webhook,
                          const char *ca_pem)
{
    struct ks_session *session = doctor->session;
    const char *namespace_ = probe_namespace(doctor, webhook);
    struct ks_answer answer;
    struct sw_json *stored;

    if (!namespace_)
        return;
    if (sw_json_size(sw_json_at(webhook, "objectSelector", "matchExpressions", NULL)) > 0) {
        ks_find(&doctor->findings, KS_UNKNOWN, "webhook", "",
                "not tried: its objectSelector has expressions, which the trial may not match");
        return;
    }
    const char *path = sw_arena_printf(
        session->arena,
        "/apis/apps/v1/namespaces/%s/deployments?dryRun=All&fieldManager=" KS_FIELD_MANAGER,
        namespace_);
    bool is_good = ks_ask(session, "POST", path, NULL, probe_of(doctor, webhook), 0, &answer) &&
                   sw_json_parse(session->arena, answer.body, answer.body_len, &stored, NULL) == 0;
    if (is_good && !sw_json_get(sw_json_at(stored, "metadata", "annotations", NULL), SW_FENCE))
        ks_find(&doctor->findings, KS_GOOD, "webhook", "",
                "the API server reaches the webhook and trusts it (tried in namespace %s)",
                namespace_);
    else if (is_good)
        find_why_not(doctor, webhook, ca_pem, "");
    else if (answer.status >= 500 || strstr(answer.message, "webhook"))
        find_why_not(doctor, webhook, ca_pem, answer.message);
    else
        ks_doctor_unknown(doctor, "webhook", "whether the webhook answers", &answer);
}

static void check_configuration(struct ks_doctor *doctor, const struct sw_json *configuration,
                                size_t *count)
{
    const struct sw_json *webhooks = sw_json_get(configuration, "webhooks");
    const char *name = ks_text_at(sw_json_get(configuration, "metadata"), "name");

    for (size_t i = 0; i < sw_json_size(webhooks); i++) {
        const struct sw_json *webhook = sw_json_element(webhooks, i);
        const char *ca_pem;
        if (!ks_is_our_webhook(webhook))
            continue;
        (*count)++;
        doctor->configuration = name;
        ks_check_webhook(&doctor->findings, name, webhook, &ca_pem);
        const char *namespace_ =
            ks_text_at(sw_json_at(webhook, "clientConfig", "service", NULL), "namespace");
        if (!doctor->own_namespace && namespace_[0])
            doctor->own_namespace = namespace_;
        check_answers(doctor, webhook, ca_pem);
    }
}

void ks_doctor_webhooks(struct ks_doctor *doctor)
{
    struct ks_answer answer;
    const struct sw_json *list = ks_get(doctor->session, WEBHOOKS, &answer);
    const struct sw_json *items = sw_json_get(list, "items");
    size_t count = 0;

    if (!list) {
        ks_doctor_unknown(doctor, "webhook", "webhook configurations", &answer);
        return;
    }
    for (size_t i = 0; i < sw_json_size(items); i++)
        check_configuration(doctor, sw_json_element(items, i), &count);
    if (count == 0)
        ks_find(&doctor->findings, KS_BAD, "webhook",
                "apply slipway's manifests, or set webhook.enabled of its chart",
                "no webhook configuration names slipway: changes roll before they can be held");
    if (!doctor->rollouts)
        return;
    ks_check_stepping_webhooks(&doctor->findings, list, true);
    const struct sw_json *validating = ks_get(doctor->session, VALIDATING, &answer);
    if (validating)
        ks_check_stepping_webhooks(&doctor->findings, validating, false);
    else
        ks_doctor_unknown(doctor, "webhook", "validating webhook configurations", &answer);
}
