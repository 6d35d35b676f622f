/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutating- and ValidatingWebhookConfigurations: which webhook wants to see which request.
 * https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
 */
#include <stdint.h>
#include <string.h>

#include <slipway/selector.h>

#include "admission_internal.h"
#include "base/util.h"
#include "value.h"

/* ---- reading ---- */

static struct sw_selector *read_selector(const json_t *selector)
{
    if (json_object_size(selector) == 0) {
        return NULL; /* {}: everything */
    }
    size_t len = 0;
    SW_AUTO(char, sw_free) text = sw_sim_dump_text(selector, &len);
    struct sw_selector *read = NULL;
    char why[256];
    return sw_selector_parse(text, len, &read, why, sizeof(why)) ? NULL : read;
}

struct reading {
    struct sw_sim_hooks *hooks;
    bool is_mutating;
};

static int read_configuration(void *arg, const struct sw_sim_object *object)
{
    struct reading *reading = arg;
    struct sw_sim_hooks *hooks = reading->hooks;
    const json_t *list = json_object_get(sw_sim_object_json(object), "webhooks");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *json = json_array_get(list, i);
        hooks->at = sw_realloc(hooks->at, hooks->count + 1, sizeof(*hooks->at));
        hooks->at[hooks->count++] = (struct sw_sim_hook){
            .name = sw_strdup(sw_sim_text(json, "name", "")),
            .json = sw_sim_share(json),
            .is_mutating = reading->is_mutating,
            .namespaces = read_selector(json_object_get(json, "namespaceSelector")),
            .objects = read_selector(json_object_get(json, "objectSelector")),
        };
    }
    return 0;
}

struct sw_sim_hooks *sw_sim_hooks_read(const struct sw_sim_api *api)
{
    static const char *const plurals[] = {"mutatingwebhookconfigurations",
                                          "validatingwebhookconfigurations"};
    struct sw_sim_hooks *hooks = SW_NEW(struct sw_sim_hooks);
    hooks->refs = 1;
    for (size_t i = 0; i < SW_ARRAY_SIZE(plurals); i++) {
        const struct sw_sim_kind *kind =
            sw_sim_api_kind(api, "admissionregistration.k8s.io", "v1", plurals[i]);
        struct reading reading = {.hooks = hooks, .is_mutating = i == 0};
        sw_sim_store_each(api->store, kind, NULL, NULL, read_configuration, &reading);
    }
    return hooks;
}

void sw_sim_hooks_unref(struct sw_sim_hooks *hooks)
{
    if (!hooks || --hooks->refs > 0) {
        return;
    }
    for (size_t i = 0; i < hooks->count; i++) {
        struct sw_sim_hook *hook = &hooks->at[i];
        sw_free(hook->name);
        json_decref(hook->json);
        sw_selector_free(hook->namespaces);
        sw_selector_free(hook->objects);
    }
    sw_free(hooks->at);
    sw_free(hooks);
}

/* ---- rules ---- */

static bool names(const json_t *list, const char *text)
{
    return sw_sim_holds(list, "*") || sw_sim_holds(list, text);
}

/* "pods", "pods/status", "pods/STAR", "STAR", "STAR/status", and "STAR/STAR" for everything. */
static bool names_resource(const json_t *list, const char *plural, const char *subresource)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text) {
            continue;
        }
        size_t len = strcspn(text, "/");
        bool fits = (len == 1 && *text == '*') ||
                    (strlen(plural) == len && strncmp(text, plural, len) == 0);
        const char *sub = text[len] ? text + len + 1 : "";
        if (fits && (strcmp(sub, subresource) == 0 || strcmp(sub, "*") == 0)) {
            return true;
        }
    }
    return false;
}

static bool rule_fits(const json_t *rule, const struct sw_sim_kind *kind,
                      const struct sw_sim_admission_request *request)
{
    static const char *const operations[] = {"CREATE", "UPDATE", "DELETE"};
    const char *scope = sw_sim_text(rule, "scope", "*");
    return (strcmp(scope, "*") == 0 || (strcmp(scope, "Namespaced") == 0) == kind->is_namespaced) &&
           names(json_object_get(rule, "operations"), operations[request->operation]) &&
           names(json_object_get(rule, "apiGroups"), kind->group) &&
           names(json_object_get(rule, "apiVersions"), kind->version) &&
           names_resource(json_object_get(rule, "resources"), kind->plural, request->subresource);
}

static bool any_rule_fits(const struct sw_sim_hook *hook, const struct sw_sim_kind *kind,
                          const struct sw_sim_admission_request *request)
{
    const json_t *rules = json_object_get(hook->json, "rules");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        if (rule_fits(json_array_get(rules, i), kind, request)) {
            return true;
        }
    }
    return false;
}

/* ---- selectors ---- */

static bool fits_namespace(const struct sw_sim_api *api, const struct sw_sim_hook *hook,
                           const struct sw_sim_admission_request *request)
{
    if (!hook->namespaces) {
        return true;
    }
    bool is_namespace = !*request->kind->group && strcmp(request->kind->plural, "namespaces") == 0;
    if (!request->kind->is_namespaced && !is_namespace) {
        return true;
    }
    if (is_namespace && request->operation != SW_SIM_DELETE && !*request->subresource) {
        return sw_sim_labels_match(hook->namespaces, sw_sim_at(request->object, "metadata.labels"));
    }
    const struct sw_sim_kind *kind = sw_sim_api_kind(api, "", "v1", "namespaces");
    const struct sw_sim_object *space =
        sw_sim_store_get(api->store, kind, "", is_namespace ? request->name : request->namespace_);
    return sw_sim_labels_match(
        hook->namespaces, space ? sw_sim_at(sw_sim_object_json(space), "metadata.labels") : NULL);
}

/* Either state of the object; one that is not there fits nothing. */
static bool fits_object(const struct sw_sim_hook *hook,
                        const struct sw_sim_admission_request *request)
{
    const json_t *both[] = {request->object, request->old_object};
    for (size_t i = 0; hook->objects && i < SW_ARRAY_SIZE(both); i++) {
        if (both[i] && sw_sim_labels_match(hook->objects, sw_sim_at(both[i], "metadata.labels"))) {
            return true;
        }
    }
    return !hook->objects;
}

bool sw_sim_hook_wants(const struct sw_sim_api *api, const struct sw_sim_hook *hook,
                       const struct sw_sim_admission_request *request, struct sw_sim_view *ret_view)
{
    ret_view->kind = NULL;
    if (any_rule_fits(hook, request->kind, request)) {
        ret_view->kind = request->kind;
    } else if (strcmp(sw_sim_text(hook->json, "matchPolicy", "Equivalent"), "Equivalent") == 0) {
        for (size_t i = 0; !ret_view->kind && i < api->served_count; i++) {
            const struct sw_sim_kind *other = api->served[i].kind;
            if (other != request->kind && sw_sim_same_resource(other, request->kind) &&
                any_rule_fits(hook, other, request)) {
                ret_view->kind = other;
            }
        }
    }
    return ret_view->kind && fits_namespace(api, hook, request) && fits_object(hook, request);
}
