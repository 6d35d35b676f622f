/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The AdmissionReview (admission.k8s.io/v1) that a webhook gets, and what its answer means. Texts:
 * k8s.io/apiserver, pkg/admission/plugin/webhook.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "admission_internal.h"
#include "base/util.h"
#include "kube/base64.h"
#include "value.h"
#include "write_internal.h"

/* ---- what is sent ---- */

static json_t *kind_of(const struct sw_sim_kind *kind, const char *subresource)
{
    const struct sw_sim_kind *shown = strcmp(subresource, "scale") == 0 ? &sw_sim_scale_kind : kind;
    return json_pack("{s:s,s:s,s:s}", "group", shown->group, "version", shown->version, "kind",
                     shown->kind);
}

static json_t *resource_of(const struct sw_sim_kind *kind)
{
    return json_pack("{s:s,s:s,s:s}", "group", kind->group, "version", kind->version, "resource",
                     kind->plural);
}

/* In the version of the view; the Scale of a scale subresource. */
static json_t *shown(const struct sw_sim_admission_request *request, const struct sw_sim_view *view,
                     const json_t *object)
{
    if (!object) {
        return json_null();
    }
    if (strcmp(request->subresource, "scale") == 0) {
        return strcmp(sw_sim_text(object, "kind", ""), "Scale") == 0
                   ? sw_sim_share(object)
                   : sw_sim_scale(request->kind, object);
    }
    return sw_sim_version_json(object, view->kind);
}

char *sw_sim_review_text(const struct sw_sim_admission_request *request,
                         const struct sw_sim_view *view, const json_t *object, const char *uid,
                         size_t *ret_len)
{
    static const char *const operations[] = {"CREATE", "UPDATE", "DELETE"};
    json_t *asked =
        json_pack("{s:s,s:o,s:o}", "uid", uid, "kind", kind_of(view->kind, request->subresource),
                  "resource", resource_of(view->kind));
    if (*request->subresource) {
        sw_sim_put_text(asked, "subResource", request->subresource);
    }
    json_object_set_new(asked, "requestKind", kind_of(request->kind, request->subresource));
    json_object_set_new(asked, "requestResource", resource_of(request->kind));
    if (*request->subresource) {
        sw_sim_put_text(asked, "requestSubResource", request->subresource);
    }
    if (*request->name) {
        sw_sim_put_text(asked, "name", request->name);
    }
    bool is_namespace = !*request->kind->group && strcmp(request->kind->plural, "namespaces") == 0;
    const char *namespace_ = is_namespace ? request->name : request->namespace_;
    if (*namespace_) {
        sw_sim_put_text(asked, "namespace", namespace_);
    }
    sw_sim_put_text(asked, "operation", operations[request->operation]);
    json_t *user = json_pack("{s:s}", "username", request->user->name);
    if (json_array_size(request->user->groups)) {
        json_object_set(user, "groups", request->user->groups);
    }
    json_object_set_new(asked, "userInfo", user);
    json_object_set_new(asked, "object", shown(request, view, object));
    json_object_set_new(asked, "oldObject", shown(request, view, request->old_object));
    json_object_set_new(asked, "dryRun", json_boolean(request->is_dry_run));
    json_object_set_new(asked, "options",
                        request->options ? sw_sim_share(request->options) : json_null());
    json_t *review = json_pack("{s:s,s:s,s:o}", "kind", "AdmissionReview", "apiVersion",
                               "admission.k8s.io/v1", "request", asked);
    char *text = sw_sim_dump_text(review, ret_len);
    json_decref(review);
    return text;
}

/* ---- what comes back ---- */

static json_t *denied(const struct sw_sim_hook *hook, const json_t *result)
{
    const char *message = sw_sim_text(result, "message", "");
    const char *reason = sw_sim_text(result, "reason", "");
    int64_t code = sw_sim_int_at(result, "code", 0);
    bool is_explained = *message || *reason;
    SW_AUTO(char, sw_free)
    text = sw_asprintf("admission webhook \"%s\" denied the request%s%s", hook->name,
                       is_explained ? ": " : " without explanation", *message ? message : reason);
    json_t *refusal = sw_sim_status(code < 400 ? 400 : (int)code, reason, text);
    json_t *details = json_object_get(result, "details");
    if (json_is_object(details)) {
        json_object_set(refusal, "details", details);
    }
    return refusal;
}

/* The answer is not one: why. */
static char *check_answer(const json_t *review, const char *uid)
{
    const json_t *response = json_object_get(review, "response");
    if (!json_is_object(response)) {
        return sw_strdup("webhook response was absent");
    }
    const char *version = sw_sim_text(review, "apiVersion", "");
    const char *kind = sw_sim_text(review, "kind", "");
    if (strcmp(version, "admission.k8s.io/v1") != 0 || strcmp(kind, "AdmissionReview") != 0) {
        return sw_asprintf("expected webhook response of admission.k8s.io/v1, "
                           "Kind=AdmissionReview, got %s, Kind=%s",
                           version, kind);
    }
    const char *given = sw_sim_text(response, "uid", "");
    if (strcmp(given, uid) != 0) {
        return sw_asprintf("expected response.uid=\"%s\", got \"%s\"", uid, given);
    }
    const char *patch = sw_sim_text(response, "patch", "");
    const char *type = sw_sim_text(response, "patchType", "");
    if (*patch && !*type) {
        return sw_strdup("webhook returned response.patch but not response.patchType");
    }
    if (*type && strcmp(type, "JSONPatch") != 0) {
        return sw_asprintf("webhook returned invalid response.patchType of \"%s\"", type);
    }
    return NULL;
}

static json_t *decode_patch(const json_t *response)
{
    const char *text = sw_sim_text(response, "patch", "");
    char *bytes = NULL;
    size_t len = 0;
    if (!*text || sw_base64_decode(text, strlen(text), &bytes, &len)) {
        return NULL;
    }
    json_t *patch = json_loadb(bytes, len, 0, NULL);
    sw_free(bytes);
    return patch;
}

/* The URL as the real server shows it in its errors. */
static char *url_of(const struct sw_sim_hook *hook)
{
    const json_t *client = json_object_get(hook->json, "clientConfig");
    const json_t *service = json_object_get(client, "service");
    int64_t timeout_s = sw_sim_int_at(hook->json, "timeoutSeconds", 10);
    if (!service) {
        return sw_asprintf("%s?timeout=%llds", sw_sim_text(client, "url", ""),
                           (long long)timeout_s);
    }
    const char *path = sw_sim_text(service, "path", "/");
    return sw_asprintf("https://%s.%s.svc:%lld%s%s?timeout=%llds", sw_sim_text(service, "name", ""),
                       sw_sim_text(service, "namespace", ""),
                       (long long)sw_sim_int_at(service, "port", 443), *path == '/' ? "" : "/",
                       path, (long long)timeout_s);
}

void sw_sim_verdict_read(const struct sw_sim_hook *hook, const char *uid, int status,
                         const char *body, size_t len, const char *why,
                         struct sw_sim_verdict *ret_verdict)
{
    *ret_verdict = (struct sw_sim_verdict){0};
    if (status == 0) {
        SW_AUTO(char, sw_free) url = url_of(hook);
        ret_verdict->failure = sw_asprintf("failed calling webhook \"%s\": Post \"%s\": %s",
                                           hook->name, url, why ? why : "no answer");
        return;
    }
    if (status < 200 || status > 299) {
        ret_verdict->failure =
            sw_asprintf("failed calling webhook \"%s\": the server answered with status %d: %.*s",
                        hook->name, status, (int)SW_MIN(len, (size_t)256), body);
        return;
    }
    json_t *review = json_loadb(body, len, 0, NULL);
    SW_AUTO(char, sw_free) wrong = check_answer(review, uid);
    if (wrong) {
        ret_verdict->failure =
            sw_asprintf("failed calling webhook \"%s\": received invalid webhook response: %s",
                        hook->name, wrong);
        json_decref(review);
        return;
    }
    const json_t *response = json_object_get(review, "response");
    ret_verdict->warnings = sw_sim_share(json_object_get(response, "warnings"));
    if (!json_is_true(json_object_get(response, "allowed"))) {
        ret_verdict->refusal = denied(hook, json_object_get(response, "status"));
    } else if (*sw_sim_text(response, "patch", "")) {
        ret_verdict->patch = decode_patch(response);
        if (!ret_verdict->patch) {
            ret_verdict->refusal = sw_sim_internal_error("the patch of the webhook is no JSON");
        }
    }
    json_decref(review);
}

void sw_sim_verdict_done(struct sw_sim_verdict *verdict)
{
    json_decref(verdict->refusal);
    json_decref(verdict->patch);
    json_decref(verdict->warnings);
    sw_free(verdict->failure);
}
