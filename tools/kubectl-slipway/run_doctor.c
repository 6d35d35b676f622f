/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor: asks for what doctor.c judges, and shows the findings.
 */
#include <string.h>

#include <slipway/json.h>

#include "base/util.h"
#include "doctor_ask.h"
#include "output.h"
#include "run.h"
#include "session.h"
#include "table.h"
#include "world.h"

#define CRD "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
#define OWN_LABEL "labelSelector=app.kubernetes.io%2Fname%3Dslipway"

/* ---- the API server ---- */

/* False: there is nobody to ask anything else. */
static bool check_server(struct ks_doctor *doctor)
{
    struct ks_answer answer;
    const struct sw_json *version = ks_get(doctor->session, "/version", &answer);

    if (!version) {
        ks_find(&doctor->findings, KS_BAD, "server", "see --kubeconfig, --context and KUBECONFIG",
                "%s", answer.message);
        return false;
    }
    ks_find(&doctor->findings, KS_GOOD, "server", "", "the API server is %s",
            ks_text_at(version, "gitVersion"));
    return true;
}

void ks_doctor_unknown(struct ks_doctor *doctor, const char *check, const char *what,
                       const struct ks_answer *answer)
{
    ks_find(&doctor->findings, KS_UNKNOWN, check,
            answer->status == 403 ? "ask somebody who may" : "", "cannot read %s: %s", what,
            answer->message);
}

static void check_crd(struct ks_doctor *doctor)
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
        ks_doctor_unknown(doctor, "crd", "the CRD", &answer);
}

/* ---- slipway itself ---- */

static void take_deployment(struct ks_doctor *doctor, const struct sw_json *deployment)
{
    const struct sw_json *pod = sw_json_at(deployment, "spec", "template", "spec", NULL);
    const char *account = sw_json_get_string(pod, "serviceAccountName");

    ks_check_replicas(&doctor->findings, deployment, SW_VERSION);
    doctor->own_namespace = ks_text_at(sw_json_get(deployment, "metadata"), "namespace");
    doctor->deployment = ks_text_at(sw_json_get(deployment, "metadata"), "name");
    if (!doctor->service_account)
        doctor->service_account = account ? account : "default";
    doctor->replicas = sw_json_get_int(sw_json_get(deployment, "spec"), "replicas", 1);
}

static void check_replicas(struct ks_doctor *doctor)
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
        ks_doctor_unknown(doctor, "replicas", "Deployments", &answer);
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
static const struct sw_json *find_lease(struct ks_doctor *doctor, struct ks_answer *ret_answer)
{
    struct ks_session *session = doctor->session;
    const char *path = sw_arena_printf(
        session->arena, "/apis/coordination.k8s.io/v1/namespaces/%s/leases", doctor->own_namespace);
    const struct sw_json *list = ks_get(session, path, ret_answer), *found = NULL;
    const struct sw_json *items = sw_json_get(list, "items");
    const char *own = doctor->deployment ? doctor->deployment : "slipway";

    for (size_t i = 0; i < sw_json_size(items); i++) {
        const struct sw_json *lease = sw_json_element(items, i);
        const char *holder = ks_text_at(sw_json_get(lease, "spec"), "holderIdentity");
        if (strcmp(ks_text_at(sw_json_get(lease, "metadata"), "name"), "slipway") == 0)
            return lease;
        if (strncmp(holder, own, strlen(own)) == 0 && holder[strlen(own)] == '-')
            found = lease;
    }
    return found;
}

static void check_lease(struct ks_doctor *doctor)
{
    struct ks_answer answer;
    const struct sw_json *lease = find_lease(doctor, &answer);

    doctor->has_lease = lease != NULL;
    if (answer.status >= 200 && answer.status < 300)
        ks_check_lease(&doctor->findings, lease, doctor->replicas, ks_now_us(doctor->session));
    else
        ks_doctor_unknown(doctor, "lease", "Leases", &answer);
}

/* ---- permissions ---- */

static const char *name_of(const struct ks_doctor *doctor, const struct ks_permission *permission)
{
    bool is_webhooks = strcmp(permission->resource, "mutatingwebhookconfigurations") == 0 ||
                       strcmp(permission->resource, "validatingwebhookconfigurations") == 0;

    return is_webhooks && doctor->configuration ? doctor->configuration : permission->name;
}

/* With several replicas one has to be elected. */
static bool is_needed(const struct ks_doctor *doctor, const struct ks_permission *permission)
{
    return !permission->only_with || (strcmp(permission->resource, "leases") == 0 &&
                                      (doctor->has_lease || doctor->replicas > 1));
}

static struct sw_json *access_review(struct ks_doctor *doctor,
                                     const struct ks_permission *permission, const char *verb)
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
static const char *denied_verbs(struct ks_doctor *doctor, const struct ks_permission *permission,
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

static void find_denied(struct ks_doctor *doctor, const struct ks_permission *p, const char *denied)
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

/* False: that could not be asked. */
static bool check_table(struct ks_doctor *doctor, const struct ks_permission *table,
                        bool *ret_is_any)
{
    struct ks_answer answer;

    for (const struct ks_permission *p = table; p->resource; p++) {
        const char *denied = denied_verbs(doctor, p, &answer);
        if (!denied) {
            ks_doctor_unknown(doctor, "rbac", "what slipway may do", &answer);
            return false;
        }
        if (!denied[0])
            continue;
        *ret_is_any = true;
        find_denied(doctor, p, denied);
    }
    return true;
}

static void check_permissions(struct ks_doctor *doctor)
{
    bool is_any = false;

    if (!check_table(doctor, ks_permissions, &is_any) ||
        (doctor->rollouts && !check_table(doctor, ks_stepping_permissions, &is_any)))
        return;
    if (!is_any)
        ks_find(&doctor->findings, KS_GOOD, "rbac", "", "ServiceAccount %s/%s has all permissions",
                doctor->own_namespace, doctor->service_account);
}

static void check_coordinations(struct ks_doctor *doctor)
{
    struct ks_session *session = doctor->session;
    const struct sw_object *const *objects;
    struct ks_answer answer;
    size_t count;

    if (!ks_list(session, &coord_kind, NULL, &objects, &count, &answer)) {
        if (answer.status != 404) /* else it has been said of the CRD */
            ks_doctor_unknown(doctor, "coordinations", "coordinations", &answer);
        return;
    }
    ks_check_coordinations(&doctor->findings,
                           ks_world_new(session->arena,
                                        (const struct coordination *const *)(const void *)objects,
                                        count, NULL, 0),
                           ks_now_us(session));
}

/* A cluster without the kind, or without one of it, has no trouble with it. */
static void look_at_rollouts(struct ks_doctor *doctor)
{
    struct ks_session *session = doctor->session;
    const struct sw_object *const *objects;
    struct ks_answer answer;
    size_t count;

    if (!ks_list(session, &step_kind, NULL, &objects, &count, &answer)) {
        if (answer.status != 404)
            ks_doctor_unknown(doctor, "rollouts", "SteppedRollouts", &answer);
        return;
    }
    if (count == 0)
        return;
    doctor->rollouts = ks_world_new(session->arena, NULL, 0, NULL, 0);
    ks_world_set_rollouts(session->arena, doctor->rollouts,
                          (const struct stepped *const *)(const void *)objects, count);
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

static void print(struct ks_doctor *doctor)
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

static struct sw_json *json_of(struct ks_doctor *doctor)
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
    struct ks_doctor doctor = {
        .session = session,
        .service_account = session->options->values[KS_SERVICE_ACCOUNT],
        .replicas = -1,
    };

    ks_findings_init(&doctor.findings, session->arena);
    if (check_server(&doctor)) {
        check_crd(&doctor);
        check_replicas(&doctor);
        look_at_rollouts(&doctor);
        ks_doctor_webhooks(&doctor);
        if (!doctor.own_namespace)
            doctor.own_namespace = "kube-system";
        if (!doctor.service_account)
            doctor.service_account = "slipway";
        check_lease(&doctor);
        check_permissions(&doctor);
        check_coordinations(&doctor);
        if (doctor.rollouts)
            ks_check_rollouts(&doctor.findings, doctor.rollouts, ks_now_us(session));
    }
    if (ks_flag(session, KS_OUTPUT))
        ks_put(session->options->values[KS_OUTPUT], json_of(&doctor), &session->out);
    else
        print(&doctor);
    return doctor.findings.counts[KS_BAD] > 0 ? KS_FINDINGS : KS_DONE;
}
