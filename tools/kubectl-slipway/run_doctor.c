/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor: asks for what doctor.c judges, tries the webhook, and shows the findings.
 */
#include <inttypes.h>
#include <string.h>

#include <slipway/arbiter.h>
#include <slipway/json.h>
#include <slipway/selector.h>

#include "base/loop.h"
#include "base/util.h"
#include "doctor.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "net/url.h"
#include "output.h"
#include "run.h"
#include "session.h"
#include "table.h"
#include "world.h"

#define CRD "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
#define WEBHOOKS "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
#define OWN_LABEL "labelSelector=app.kubernetes.io%2Fname%3Dslipway"

enum { TRY_MS = 10000 };

struct doctor {
    struct ks_session *session;
    struct ks_findings findings;
    const char *own_namespace, *service_account;
    const char *deployment;    /* of slipway; NULL: not known */
    const char *configuration; /* of webhooks, in which slipway is named; NULL */
    int64_t replicas;          /* of slipway; -1: not known */
    bool has_lease;
};

static const char *text_at(const struct sw_json *object, const char *key)
{
    const char *text = sw_json_get_string(object, key);

    return text ? text : "";
}

/* ---- the API server ---- */

/* False: there is nobody to ask anything else. */
static bool check_server(struct doctor *doctor)
{
    struct ks_answer answer;
    const struct sw_json *version = ks_get(doctor->session, "/version", &answer);

    if (!version) {
        ks_find(&doctor->findings, KS_BAD, "server", "see --kubeconfig, --context and KUBECONFIG",
                "%s", answer.message);
        return false;
    }
    ks_find(&doctor->findings, KS_GOOD, "server", "", "the API server is %s",
            text_at(version, "gitVersion"));
    return true;
}

/* For what could not be read, and is not just missing. */
static void find_unknown(struct doctor *doctor, const char *check, const char *what,
                         const struct ks_answer *answer)
{
    ks_find(&doctor->findings, KS_UNKNOWN, check,
            answer->status == 403 ? "ask somebody who may" : "", "cannot read %s: %s", what,
            answer->message);
}

static void check_crd(struct doctor *doctor)
{
    struct ks_answer answer;
    const struct sw_json *crd =
        ks_get(doctor->session, CRD "deploymentcoordinations.apps.containerinfra.nl", &answer);

    if (crd)
        ks_check_crd(&doctor->findings, crd);
    else if (answer.status == 404)
        ks_find(&doctor->findings, KS_BAD, "crd",
                "install the chart slipway-crds, or kubectl apply -f manifests/crds",
                "the CRD of DeploymentCoordination is missing");
    else
        find_unknown(doctor, "crd", "the CRD", &answer);
}

/* ---- does the API server reach it? ---- */

/* A Deployment that no coordination selects, with an annotation that slipway takes off whatever is
 * new: if it is still there, slipway was not asked. */
static struct sw_json *probe_of(struct doctor *doctor, const struct sw_json *webhook)
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
static const char *probe_namespace(struct doctor *doctor, const struct sw_json *webhook)
{
    struct ks_session *session = doctor->session;
    const struct sw_object *const *namespaces;
    struct ks_answer answer;
    const char *found = NULL;
    size_t count;

    if (!ks_list(session, &kind_namespace, NULL, &namespaces, &count, &answer)) {
        find_unknown(doctor, "webhook", "namespaces", &answer);
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
static const char *try_url(struct doctor *doctor, const char *address, const char *ca_pem)
{
    static const struct sw_http_exchange_events events = {.on_end = on_trial_end};
    struct ks_session *session = doctor->session;
    struct trial trial = {.loop = session->loop};
    const struct sw_tls_client_options tls = {.ca_pem = ca_pem};
    struct sw_http_client_options options = {.connect_timeout_ms = TRY_MS};
    const struct sw_http_request request = {.method = "GET", .head_timeout_ms = TRY_MS};
    struct sw_http_request sent = request;
    struct sw_http_client *client = NULL;
    struct sw_http_exchange *exchange;
    struct sw_url url;

    if (sw_url_parse(address, &url, &trial.error))
        return sw_arena_strdup(session->arena, trial.error.text);
    trial.code = sw_tls_client_config_new(&tls, &options.tls, &trial.error);
    options.host = url.host;
    options.port = url.port;
    sent.target = url.path[0] ? url.path : "/";
    if (!trial.code)
        trial.code = sw_http_client_open(session->loop, &options, &session->log, &client);
    if (!trial.code)
        trial.code = sw_http_send(client, &sent, &events, &trial, &exchange);
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

/* Of a Service: is anybody behind it? "": somebody is, or it may not be looked at. */
static const char *try_service(struct doctor *doctor, const struct sw_json *service)
{
    struct ks_session *session = doctor->session;
    const char *namespace_ = text_at(service, "namespace"), *name = text_at(service, "name");
    const char *path =
        sw_arena_printf(session->arena, "/api/v1/namespaces/%s/endpoints/%s", namespace_, name);
    struct ks_answer answer;
    const struct sw_json *endpoints = ks_get(session, path, &answer);
    const struct sw_json *subsets = sw_json_get(endpoints, "subsets");

    for (size_t i = 0; i < sw_json_size(subsets); i++)
        if (sw_json_size(sw_json_get(sw_json_element(subsets, i), "addresses")) > 0)
            return "";
    if (!endpoints && answer.status != 404)
        return "";
    return sw_arena_printf(session->arena, "no ready Pod is behind the Service %s/%s", namespace_,
                           name);
}

/* Why the API server did not get an answer, as far as it can be seen from here. */
static void find_why_not(struct doctor *doctor, const struct sw_json *webhook, const char *ca_pem,
                         const char *said)
{
    const struct sw_json *client = sw_json_get(webhook, "clientConfig");
    const struct sw_json *service = sw_json_get(client, "service");
    const char *url = text_at(client, "url"), *why = "";

    if (said[0])
        why = said;
    else if (!ca_pem)
        why = "caBundle cannot be used";
    else if (service)
        why = try_service(doctor, service);
    else
        why = try_url(doctor, url, ca_pem);
    ks_find(&doctor->findings, KS_BAD, "webhook",
            "without it a change rolls before slipway can hold it. Does slipway run, may the API "
            "server reach it (firewall, NetworkPolicy), and is caBundle the CA of its certificate?",
            "the API server does not get answers from the webhook%s%s", why[0] ? ": " : "", why);
}

static void check_answers(struct doctor *doctor, const struct sw_json *webhook, const char *ca_pem)
{
    struct ks_session *session = doctor->session;
    const char *namespace_ = probe_namespace(doctor, webhook);
    struct ks_answer answer;
    struct sw_json *stored;

    if (!namespace_)
        return;
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
        find_unknown(doctor, "webhook", "whether the webhook answers", &answer);
}

static bool is_asked_somewhere(const struct sw_json *webhook)
{
    return sw_json_get(sw_json_get(webhook, "clientConfig"), "url") ||
           sw_json_get(sw_json_get(webhook, "clientConfig"), "service");
}

static void check_configuration(struct doctor *doctor, const struct sw_json *configuration,
                                size_t *count)
{
    const struct sw_json *webhooks = sw_json_get(configuration, "webhooks");
    const char *name = text_at(sw_json_get(configuration, "metadata"), "name");

    for (size_t i = 0; i < sw_json_size(webhooks); i++) {
        const struct sw_json *webhook = sw_json_element(webhooks, i);
        const char *ca_pem;
        if (!ks_is_our_webhook(webhook))
            continue;
        (*count)++;
        doctor->configuration = name;
        ks_check_webhook(&doctor->findings, name, webhook, &ca_pem);
        const char *namespace_ =
            text_at(sw_json_at(webhook, "clientConfig", "service", NULL), "namespace");
        if (!doctor->own_namespace && namespace_[0])
            doctor->own_namespace = namespace_;
        if (is_asked_somewhere(webhook))
            check_answers(doctor, webhook, ca_pem);
    }
}

static void check_webhooks(struct doctor *doctor)
{
    struct ks_answer answer;
    const struct sw_json *list = ks_get(doctor->session, WEBHOOKS, &answer);
    const struct sw_json *items = sw_json_get(list, "items");
    size_t count = 0;

    if (!list) {
        find_unknown(doctor, "webhook", "webhook configurations", &answer);
        return;
    }
    for (size_t i = 0; i < sw_json_size(items); i++)
        check_configuration(doctor, sw_json_element(items, i), &count);
    if (count == 0)
        ks_find(&doctor->findings, KS_BAD, "webhook",
                "apply slipway's manifests, or set webhook.enabled of its chart",
                "no webhook configuration names slipway: changes roll before they can be held");
}

/* ---- slipway itself ---- */

static void take_deployment(struct doctor *doctor, const struct sw_json *deployment)
{
    const struct sw_json *pod = sw_json_at(deployment, "spec", "template", "spec", NULL);
    const char *account = sw_json_get_string(pod, "serviceAccountName");

    ks_check_replicas(&doctor->findings, deployment, SW_VERSION);
    doctor->own_namespace = text_at(sw_json_get(deployment, "metadata"), "namespace");
    doctor->deployment = text_at(sw_json_get(deployment, "metadata"), "name");
    if (!doctor->service_account)
        doctor->service_account = account ? account : "default";
    doctor->replicas = sw_json_get_int(sw_json_get(deployment, "spec"), "replicas", 1);
}

static void check_replicas(struct doctor *doctor)
{
    struct ks_session *session = doctor->session;
    const char *wanted = session->options->values[KS_SLIPWAY_NAMESPACE];
    const char *path =
        wanted ? sw_arena_printf(session->arena, "/apis/apps/v1/namespaces/%s/deployments?%s",
                                 wanted, OWN_LABEL)
               : "/apis/apps/v1/deployments?" OWN_LABEL;
    struct ks_answer answer;
    const struct sw_json *list = ks_get(session, path, &answer);
    const struct sw_json *items = sw_json_get(list, "items");

    if (!list) {
        find_unknown(doctor, "replicas", "Deployments", &answer);
    } else if (sw_json_size(items) == 0) {
        ks_find(&doctor->findings, KS_UNKNOWN, "replicas",
                "no fault if slipway runs outside of this cluster",
                "there is no Deployment with the label app.kubernetes.io/name=slipway%s%s",
                wanted ? " in namespace " : "", wanted ? wanted : "");
    } else {
        if (sw_json_size(items) > 1)
            ks_find(&doctor->findings, KS_WARNING, "replicas",
                    "one slipway for a cluster, unless each looks at a namespace of its own",
                    "%zu Deployments have the label app.kubernetes.io/name=slipway",
                    sw_json_size(items));
        take_deployment(doctor, sw_json_element(items, 0));
    }
    if (wanted)
        doctor->own_namespace = wanted;
}

/* The one of the usual name; else one that a Pod of slipway's Deployment holds, since
 * leaderElection.id may name another. NULL: there is none, or answer says why not. */
static const struct sw_json *find_lease(struct doctor *doctor, struct ks_answer *ret_answer)
{
    struct ks_session *session = doctor->session;
    const char *path = sw_arena_printf(
        session->arena, "/apis/coordination.k8s.io/v1/namespaces/%s/leases", doctor->own_namespace);
    const struct sw_json *list = ks_get(session, path, ret_answer), *found = NULL;
    const struct sw_json *items = sw_json_get(list, "items");
    const char *own = doctor->deployment ? doctor->deployment : "slipway";

    for (size_t i = 0; i < sw_json_size(items); i++) {
        const struct sw_json *lease = sw_json_element(items, i);
        const char *holder = text_at(sw_json_get(lease, "spec"), "holderIdentity");
        if (strcmp(text_at(sw_json_get(lease, "metadata"), "name"), "slipway") == 0)
            return lease;
        if (strncmp(holder, own, strlen(own)) == 0 && holder[strlen(own)] == '-')
            found = lease;
    }
    return found;
}

static void check_lease(struct doctor *doctor)
{
    struct ks_answer answer;
    const struct sw_json *lease = find_lease(doctor, &answer);

    doctor->has_lease = lease != NULL;
    if (answer.status >= 200 && answer.status < 300)
        ks_check_lease(&doctor->findings, lease, doctor->replicas, ks_now_us(doctor->session));
    else
        find_unknown(doctor, "lease", "Leases", &answer);
}

/* ---- permissions ---- */

static const char *name_of(const struct doctor *doctor, const struct ks_permission *permission)
{
    bool is_webhooks = strcmp(permission->resource, "mutatingwebhookconfigurations") == 0;

    return is_webhooks && doctor->configuration ? doctor->configuration : permission->name;
}

/* With several replicas one has to be elected. */
static bool is_needed(const struct doctor *doctor, const struct ks_permission *permission)
{
    return !permission->only_with || (strcmp(permission->resource, "leases") == 0 &&
                                      (doctor->has_lease || doctor->replicas > 1));
}

static struct sw_json *access_review(struct doctor *doctor, const struct ks_permission *permission,
                                     const char *verb)
{
    struct sw_arena *arena = doctor->session->arena;
    struct sw_json *review = sw_json_object(arena), *spec = sw_json_set_object(review, "spec");
    struct sw_json *what = sw_json_set_object(spec, "resourceAttributes");
    struct sw_json *groups = sw_json_set_array(spec, "groups");

    sw_json_set_string(review, "apiVersion", "authorization.k8s.io/v1");
    sw_json_set_string(review, "kind", "SubjectAccessReview");
    sw_json_set_string(spec, "user",
                       sw_arena_printf(arena, "system:serviceaccount:%s:%s", doctor->own_namespace,
                                       doctor->service_account));
    sw_json_append_string(groups, "system:serviceaccounts");
    sw_json_append_string(
        groups, sw_arena_printf(arena, "system:serviceaccounts:%s", doctor->own_namespace));
    sw_json_append_string(groups, "system:authenticated");
    sw_json_set_string(what, "verb", verb);
    sw_json_set_string(what, "group", permission->group);
    sw_json_set_string(what, "resource", permission->resource);
    if (permission->subresource[0])
        sw_json_set_string(what, "subresource", permission->subresource);
    if (name_of(doctor, permission))
        sw_json_set_string(what, "name", name_of(doctor, permission));
    if (permission->scope == KS_OWN)
        sw_json_set_string(what, "namespace", doctor->own_namespace);
    return review;
}

/* The verbs that it may not; NULL: that could not be asked. */
static const char *denied_verbs(struct doctor *doctor, const struct ks_permission *permission,
                                struct ks_answer *ret_answer)
{
    static const char path[] = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    struct ks_session *session = doctor->session;
    const char *denied = "";

    for (size_t i = 0; permission->verbs[i]; i++) {
        struct sw_json *review = access_review(doctor, permission, permission->verbs[i]), *said;
        if (!ks_ask(session, "POST", path, NULL, review, 0, ret_answer) ||
            sw_json_parse(session->arena, ret_answer->body, ret_answer->body_len, &said, NULL))
            return NULL;
        if (!sw_json_get_bool(sw_json_get(said, "status"), "allowed", false))
            denied = sw_arena_printf(session->arena, "%s%s%s", denied, denied[0] ? ", " : "",
                                     permission->verbs[i]);
    }
    return denied;
}

static void find_denied(struct doctor *doctor, const struct ks_permission *p, const char *denied)
{
    const char *name = name_of(doctor, p);
    const char *advice =
        "apply slipway's manifests or its chart again; or name the ServiceAccount: "
        "--service-account, --slipway-namespace";
    bool is_bad = is_needed(doctor, p);

    if (!is_bad)
        advice = sw_arena_printf(doctor->session->arena, "no fault without %s", p->only_with);
    ks_find(&doctor->findings, is_bad ? KS_BAD : KS_UNKNOWN, "rbac", advice,
            "ServiceAccount %s/%s may not %s %s%s%s%s%s%s%s%s%s: it cannot %s",
            doctor->own_namespace, doctor->service_account, denied, p->resource,
            p->subresource[0] ? "/" : "", p->subresource, p->group[0] ? "." : "", p->group,
            name ? " " : "", name ? name : "", p->scope == KS_OWN ? " in namespace " : "",
            p->scope == KS_OWN ? doctor->own_namespace : "", p->what_for);
}

static void check_permissions(struct doctor *doctor)
{
    struct ks_answer answer;
    bool is_any = false;

    for (const struct ks_permission *p = ks_permissions; p->resource; p++) {
        const char *denied = denied_verbs(doctor, p, &answer);
        if (!denied) {
            find_unknown(doctor, "rbac", "what slipway may do", &answer);
            return;
        }
        if (!denied[0])
            continue;
        is_any = true;
        find_denied(doctor, p, denied);
    }
    if (!is_any)
        ks_find(&doctor->findings, KS_GOOD, "rbac", "", "ServiceAccount %s/%s has all permissions",
                doctor->own_namespace, doctor->service_account);
}

static void check_coordinations(struct doctor *doctor)
{
    struct ks_session *session = doctor->session;
    const struct sw_object *const *objects;
    struct ks_answer answer;
    size_t count;

    if (!ks_list(session, &coord_kind, NULL, &objects, &count, &answer)) {
        if (answer.status != 404) /* else it has been said of the CRD */
            find_unknown(doctor, "coordinations", "coordinations", &answer);
        return;
    }
    ks_check_coordinations(&doctor->findings,
                           ks_world_new(session->arena,
                                        (const struct coordination *const *)(const void *)objects,
                                        count, NULL, 0),
                           ks_now_us(session));
}

/* ---- what was found ---- */

static const struct {
    const char *word, *mark, *ascii;
    enum ks_colour colour;
} results[] = {
    [KS_GOOD] = {"good", "\xe2\x9c\x93", "ok", KS_GREEN},
    [KS_WARNING] = {"warning", "!", "!", KS_YELLOW},
    [KS_BAD] = {"bad", "\xe2\x9c\x97", "x", KS_RED},
    [KS_UNKNOWN] = {"unknown", "?", "?", KS_DIM},
};

static void print(struct doctor *doctor)
{
    struct ks_session *session = doctor->session;
    const struct ks_findings *findings = &doctor->findings;
    struct sw_buf *out = &session->out;

    for (const struct ks_finding *f = findings->first; f; f = f->next) {
        const char *mark = session->is_utf8 ? results[f->result].mark : results[f->result].ascii;
        ks_paint(out, mark, results[f->result].colour, session->is_coloured);
        sw_buf_printf(out, "%*s%-13s  %s\n", session->is_utf8 ? 2 : 4 - (int)strlen(mark), "",
                      f->check, f->what);
        if (f->advice[0])
            sw_buf_printf(out, "%*s%s\n", session->is_utf8 ? 18 : 19, "", f->advice);
    }
    sw_buf_printf(out, "\n%zu good, %zu to be mended, %zu warnings, %zu unknown\n",
                  findings->counts[KS_GOOD], findings->counts[KS_BAD], findings->counts[KS_WARNING],
                  findings->counts[KS_UNKNOWN]);
}

static struct sw_json *json_of(struct doctor *doctor)
{
    struct sw_json *json = sw_json_object(doctor->session->arena);

    sw_json_set_string(json, "kind", "SlipwayFindings");
    struct sw_json *items = sw_json_set_array(json, "items");
    for (const struct ks_finding *f = doctor->findings.first; f; f = f->next) {
        struct sw_json *item = sw_json_append_object(items);
        sw_json_set_string(item, "check", f->check);
        sw_json_set_string(item, "result", results[f->result].word);
        sw_json_set_string(item, "message", f->what);
        if (f->advice[0])
            sw_json_set_string(item, "advice", f->advice);
    }
    return json;
}

enum ks_exit ks_run_doctor(struct ks_session *session)
{
    struct doctor doctor = {
        .session = session,
        .service_account = session->options->values[KS_SERVICE_ACCOUNT],
        .replicas = -1,
    };

    ks_findings_init(&doctor.findings, session->arena);
    if (check_server(&doctor)) {
        check_crd(&doctor);
        check_replicas(&doctor);
        check_webhooks(&doctor);
        if (!doctor.own_namespace)
            doctor.own_namespace = "kube-system";
        if (!doctor.service_account)
            doctor.service_account = "slipway";
        check_lease(&doctor);
        check_permissions(&doctor);
        check_coordinations(&doctor);
    }
    if (ks_flag(session, KS_OUTPUT))
        ks_put(session->options->values[KS_OUTPUT], json_of(&doctor), &session->out);
    else
        print(&doctor);
    return doctor.findings.counts[KS_BAD] > 0 ? KS_FINDINGS : KS_DONE;
}
