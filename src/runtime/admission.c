/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the bytes of an AdmissionReview to those of its answer. The review is decoded in one pass by
 * the kind's own decoder; the answer is written as text, since its form never changes: building a
 * document first costs more than the whole rest.
 */
#include "runtime/admission.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/base64.h"
#include "kube/decode.h"
#include "net/http.h"
#include "runtime/core.h"
#include "runtime/instance.h"

/* What kubectl shows; the API server cuts at 256 and drops what is beyond 4 KiB together. */
enum { WARNING_LIMIT_CHARACTERS = 120 };

static const char json_type[] = "application/json";
static const char text_type[] = "text/plain; charset=utf-8";

/* ---- writing the answer ---- */

static void put(struct sw_buf *out, const char *text)
{
    int code = sw_buf_puts(out, text);

    sw_assert(code == 0); /* the buffer has no limit: what we answer is small */
}

static void put_bytes(struct sw_buf *out, const char *bytes, size_t len)
{
    int code = sw_buf_append(out, bytes, len);

    sw_assert(code == 0);
}

/* A JSON string. The text is UTF-8: it comes from the decoder, or from a module. */
static void put_string(struct sw_buf *out, const char *text, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    size_t plain = 0;

    put(out, "\"");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        char escape[7] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15], 0};
        if (c >= 0x20) {
            escape[1] = (char)c;
            escape[2] = '\0';
        }
        put_bytes(out, text + plain, i - plain);
        put(out, escape);
        plain = i + 1;
    }
    put_bytes(out, text + plain, len - plain);
    put(out, "\"");
}

/* The length of the longest beginning of text with at most so many characters. */
static size_t cut(const char *text, size_t characters)
{
    size_t at = 0;

    for (; text[at]; at++)
        if (((unsigned char)text[at] & 0xc0) != 0x80 && characters-- == 0)
            break;
    return at;
}

static void put_denial(struct sw_buf *out, const struct sw_review_answer *answer)
{
    const char *message = answer->deny_message ? answer->deny_message : "denied";
    int status = answer->deny_status ? answer->deny_status : 403;

    sw_buf_printf(out, ",\"status\":{\"code\":%d,\"reason\":\"%s\",\"message\":", status,
                  status == 403 ? "Forbidden" : "Invalid");
    put_string(out, message, strlen(message));
    put(out, "}");
}

static void put_patch(struct sw_buf *out, struct sw_arena *arena, const struct sw_json *patch)
{
    size_t len;
    const char *text = sw_json_dump(patch, arena, &len);

    put(out, ",\"patchType\":\"JSONPatch\",\"patch\":\"");
    int code = sw_base64_encode(out, text, len);
    sw_assert(code == 0);
    put(out, "\"");
}

/* A control character makes the API server drop the whole warning, and a person's reason for a hold
 * may have several lines: spaces instead (C1, U+0080 to U+009F, is c2 80 to c2 9f in UTF-8). */
static void put_warning(struct sw_buf *out, const char *text)
{
    char plain[WARNING_LIMIT_CHARACTERS * 4]; /* the longest characters of UTF-8 */
    size_t len = SW_MIN(cut(text, WARNING_LIMIT_CHARACTERS), sizeof(plain)), plain_len = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_c1 = c == 0xc2 && i + 1 < len && (unsigned char)text[i + 1] < 0xa0;
        plain[plain_len++] = c < 0x20 || c == 0x7f || is_c1 ? ' ' : text[i];
        i += is_c1;
    }
    while (plain_len > 0 && plain[plain_len - 1] == ' ')
        plain_len--;
    put_string(out, plain, plain_len);
}

static void put_warnings(struct sw_buf *out, const char *const *warnings, size_t count)
{
    const char *before = ",\"warnings\":[";

    for (size_t i = 0; i < count; i++) {
        if (!warnings[i])
            continue;
        put(out, before);
        put_warning(out, warnings[i]);
        before = ",";
    }
    if (*before == ',' && before[1] == '\0')
        put(out, "]");
}

void sw_admission_write(struct sw_buf *out, struct sw_arena *arena, const char *uid,
                        const struct sw_review_answer *answer, bool is_mutating)
{
    put(out, "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
             "\"response\":{\"uid\":");
    put_string(out, uid, strlen(uid));
    put(out, answer->is_denied ? ",\"allowed\":false" : ",\"allowed\":true");
    if (answer->is_denied)
        put_denial(out, answer);
    else if (is_mutating && answer->patch && sw_json_size(answer->patch) > 0)
        put_patch(out, arena, answer->patch);
    put_warnings(out, answer->warnings, SW_ARRAY_SIZE(answer->warnings));
    put(out, "}}");
}

/* ---- asking the module ---- */

static bool operation_of(const char *text, enum sw_operation *ret_operation)
{
    static const char *const names[] = {
        [SW_OPERATION_CREATE] = "CREATE",
        [SW_OPERATION_UPDATE] = "UPDATE",
        [SW_OPERATION_DELETE] = "DELETE",
    };

    for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_operation = (enum sw_operation)i;
            return true;
        }
    }
    return false;
}

/* A webhook configuration with wider rules than ours may send anything here: what the module has
 * not asked for is allowed as it is. */
static bool is_asked_for(const struct sw_admission_route *route, const struct sw_review_view *view,
                         enum sw_operation *ret_operation)
{
    const struct sw_admission *admission = &route->admission;
    const struct sw_kind *kind = admission->kind;

    if (view->subresource[0] || strcmp(view->resource, kind->plural) != 0 ||
        strcmp(view->resource_group, kind->group) != 0 ||
        strcmp(view->resource_version_, kind->version) != 0)
        return false;
    if (!operation_of(view->operation, ret_operation))
        return false;
    switch (*ret_operation) {
    case SW_OPERATION_CREATE:
        return admission->on_create;
    case SW_OPERATION_UPDATE:
        return admission->on_update;
    case SW_OPERATION_DELETE:
        return admission->on_delete;
    }
    return false;
}

/* What the operation must come with; the handlers rely on it. */
static const char *what_is_missing(const struct sw_review_view *view, enum sw_operation operation)
{
    if (operation != SW_OPERATION_DELETE && !view->object)
        return "request.object is missing";
    if (operation != SW_OPERATION_CREATE && !view->old)
        return "request.oldObject is missing";
    return NULL;
}

static void ask(const struct sw_admission_route *route, const struct sw_review_view *view,
                enum sw_operation operation, struct sw_arena *arena,
                struct sw_review_answer *ret_answer)
{
    struct sw_review review = {
        .operation = operation,
        .namespace_ = view->namespace_,
        .name = view->name,
        .username = view->username,
        .field_manager = view->field_manager,
        .is_dry_run = view->is_dry_run,
        .object = operation == SW_OPERATION_DELETE ? NULL : view->object,
        .old = operation == SW_OPERATION_CREATE ? NULL : view->old,
        .has_annotations = view->has_annotations,
        .arena = arena,
    };

    route->admission.fn(route->registration.instance, &review, ret_answer);
}

static int refuse(struct sw_buf *out, int status, const char *why)
{
    sw_buf_clear(out);
    put(out, why);
    return status;
}

static int review(struct sw_admission_route *route, const struct sw_admission_request *request,
                  const struct sw_review_view *view, struct sw_buf *out)
{
    struct sw_review_answer answer = {0};
    enum sw_operation operation;

    if (strcmp(view->api_version, "admission.k8s.io/v1") != 0) {
        sw_buf_printf(out,
                      "apiVersion is %s; only admission.k8s.io/v1 is answered: set "
                      "admissionReviewVersions: [v1] in the webhook configuration",
                      view->api_version);
        return 400;
    }
    if (is_asked_for(route, view, &operation)) {
        const char *missing = what_is_missing(view, operation);
        if (missing)
            return refuse(out, 400, missing);
        ask(route, view, operation, request->arena, &answer);
    }
    sw_admission_write(out, request->arena, view->uid, &answer, route->admission.is_mutating);
    return 200;
}

static int read_and_review(struct sw_admission_route *route,
                           const struct sw_admission_request *request, struct sw_buf *out)
{
    struct sw_review_view view = {0};
    struct sw_error error = {0};
    int status;

    if (sw_decode_review(route->decoder, request->arena, request->body, request->body_len, &view,
                         &error))
        return refuse(out, 400, error.text);
    status = review(route, request, &view, out);
    sw_object_free(route->decoder, view.object);
    sw_object_free(route->decoder, view.old);
    return status;
}

/* ---- framing ---- */

static struct sw_admission_route *find(const struct sw_core *core, const char *path)
{
    const struct sw_link *ring = &core->registry.admissions;

    for (struct sw_link *l = ring->next; l != ring; l = l->next) {
        struct sw_registration *registration = container_of(l, struct sw_registration, link);
        struct sw_admission_route *route =
            container_of(registration, struct sw_admission_route, registration);
        if (strcmp(route->admission.path, path) == 0)
            return route;
    }
    return NULL;
}

static int answer(struct sw_core *core, struct sw_admission_route *route,
                  const struct sw_admission_request *request, struct sw_buf *out)
{
    if (!sw_http_media_type_is(request->content_type, json_type))
        return refuse(out, 400, "the Content-Type must be application/json");
    if (!sw_core_is_ready(core))
        return refuse(out, 503, "not ready: what the answer depends on is not listed yet");
    if (request->body_len == 0)
        return refuse(out, 400, "the body is empty");
    return read_and_review(route, request, out);
}

int sw_admission_answer(struct sw_core *core, const struct sw_admission_request *request,
                        struct sw_buf *out, const char **ret_content_type)
{
    struct sw_admission_route *route = find(core, request->path);
    uint64_t began_ns = sw_now_ns(core->loop);

    *ret_content_type = text_type;
    if (!route)
        return refuse(out, 404, "no module answers this path");
    if (strcmp(request->method, "POST") != 0)
        return refuse(out, 405, "reviews come by POST");
    int status = answer(core, route, request, out);
    if (status == 200)
        *ret_content_type = json_type;
    else
        sw_log_warn(&core->log, "review not answered", SW_STR("path", request->path),
                    SW_INT("status", status), SW_STR("why", out->bytes));
    sw_metric_add(status == 200 ? route->answered : status == 503 ? route->unready : route->bad, 1);
    sw_metric_observe(route->latency, (double)(sw_now_ns(core->loop) - began_ns) / 1e9);
    return status;
}

/* ---- admission.h of the modules ---- */

static struct sw_metric *requests_by_code(struct sw_core *core, const char *webhook,
                                          const char *code)
{
    static const char *const labels[] = {"webhook", "code", NULL};
    const char *values[] = {webhook, code, NULL};

    return sw_metric_child(sw_metrics_family(core->metrics, SW_METRIC_COUNTER,
                                             "controller_runtime_webhook_requests_total",
                                             "Reviews, by the status of the answer.", labels, NULL,
                                             0),
                           values);
}

static void make_metrics(struct sw_core *core, struct sw_admission_route *route)
{
    /* A review takes some 20 us; the API server waits for seconds. */
    static const double buckets[] = {0.00001, 0.000025, 0.00005, 0.0001, 0.00025,
                                     0.0005,  0.001,    0.0025,  0.01,   0.1};
    static const char *const labels[] = {"webhook", NULL};
    const char *values[] = {route->admission.path, NULL};

    route->answered = requests_by_code(core, route->admission.path, "200");
    route->bad = requests_by_code(core, route->admission.path, "400");
    route->unready = requests_by_code(core, route->admission.path, "503");
    route->latency =
        sw_metric_child(sw_metrics_family(core->metrics, SW_METRIC_HISTOGRAM,
                                          "controller_runtime_webhook_latency_seconds",
                                          "How long a review took, without the network.", labels,
                                          buckets, SW_ARRAY_SIZE(buckets)),
                        values);
}

int sw_admission_register(struct sw_instance *self, const struct sw_admission *admission)
{
    struct sw_core *core = self->core;
    const char *name = admission->webhook_name ? admission->webhook_name : "";
    size_t path_size = strlen(admission->path) + 1, name_size = strlen(name) + 1;

    if (find(core, admission->path))
        return -EEXIST;
    struct sw_admission_route *route =
        sw_registry_add(&core->registry.admissions, self, sizeof(*route) + path_size + name_size);
    char *strings = (char *)(route + 1);
    route->admission = *admission;
    route->admission.path = memcpy(strings, admission->path, path_size);
    route->admission.webhook_name = memcpy(strings + path_size, name, name_size);
    route->decoder = sw_kinds_entry(&core->kinds, admission->kind)->decoder;
    make_metrics(core, route);
    return 0;
}
