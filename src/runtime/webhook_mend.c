/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing by meaning, so that a manifest that says the same in other words is left as it is: else
 * we and whoever applies it would change it for ever.
 * https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
 */
#include "runtime/webhook_mend.h"

#include <string.h>

#include <slipway/admission.h>
#include <slipway/json.h>

#include "base/buf.h"
#include "base/util.h"

/* A rule is some 200 bytes; etcd holds 1.5 MiB together. */
enum { RULES_LIMIT_BYTES = 256 * 1024 };

static const struct sw_bind entry_fields[] = {
    SW_BIND("/name", SW_BIND_STRING, struct sw_webhook_entry, name),
    SW_BIND("/reinvocationPolicy", SW_BIND_STRING, struct sw_webhook_entry, reinvocation_policy),
    SW_BIND("/clientConfig/caBundle", SW_BIND_STRING, struct sw_webhook_entry, ca_bundle),
    SW_BIND("/clientConfig/url", SW_BIND_STRING, struct sw_webhook_entry, url),
    SW_BIND("/clientConfig/service/name", SW_BIND_PRESENT, struct sw_webhook_entry, has_service),
    SW_BIND("/clientConfig/service/path", SW_BIND_STRING, struct sw_webhook_entry, service_path),
    SW_BIND("/rules", SW_BIND_RAW, struct sw_webhook_entry, rules, .limit = RULES_LIMIT_BYTES),
    SW_BIND_END,
};

static const struct sw_bind fields[] = {
    SW_BIND("/webhooks", SW_BIND_LIST, struct sw_webhook_object, entries, .element = entry_fields,
            .element_size = sizeof(struct sw_webhook_entry)),
    SW_BIND_END,
};

/* https://cert-manager.io/docs/concepts/ca-injector/ */
static const char *const injections[] = {
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    NULL,
};

#define WEBHOOKS(kind_name, plural_name)                                                       \
    {                                                                                          \
        .group = "admissionregistration.k8s.io", .version = "v1", .kind = (kind_name),         \
        .plural = (plural_name), .is_cluster_scoped = true,                                    \
        .size = sizeof(struct sw_webhook_object), .fields = fields, .annotations = injections, \
    }

const struct sw_kind sw_kind_mutating_webhooks =
    WEBHOOKS("MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
const struct sw_kind sw_kind_validating_webhooks =
    WEBHOOKS("ValidatingWebhookConfiguration", "validatingwebhookconfigurations");

/* Whether cert-manager fills in the CA. */
static bool is_injected(const struct sw_object *object)
{
    for (size_t i = 0; injections[i]; i++)
        if (sw_annotation(object, injections[i]))
            return true;
    return false;
}

/* ---- rules ---- */

static struct sw_json *operations_of(struct sw_arena *arena, const struct sw_admission *admission)
{
    struct sw_json *operations = sw_json_array(arena);

    if (admission->on_create)
        sw_json_append_string(operations, "CREATE");
    if (admission->on_update)
        sw_json_append_string(operations, "UPDATE");
    if (admission->on_delete)
        sw_json_append_string(operations, "DELETE");
    return operations;
}

static const char *scope_of(const struct sw_kind *kind)
{
    return kind->is_cluster_scoped ? "Cluster" : "Namespaced";
}

static struct sw_json *rule_of(struct sw_arena *arena, const struct sw_admission *admission)
{
    const struct sw_kind *kind = admission->kind;
    struct sw_json *rule = sw_json_object(arena);

    sw_json_append_string(sw_json_set_array(rule, "apiGroups"), kind->group);
    sw_json_append_string(sw_json_set_array(rule, "apiVersions"), kind->version);
    sw_json_append_string(sw_json_set_array(rule, "resources"), kind->plural);
    sw_json_set(rule, "operations", operations_of(arena, admission));
    sw_json_set_string(rule, "scope", scope_of(kind));
    return rule;
}

static bool has(const struct sw_json *array, const struct sw_json *element)
{
    for (size_t i = 0; i < sw_json_size(array); i++)
        if (sw_json_equal(sw_json_element(array, i), element))
            return true;
    return false;
}

/* The same elements, in any order and however often. */
static bool is_same_set(const struct sw_json *a, const struct sw_json *b)
{
    for (size_t i = 0; i < sw_json_size(a); i++)
        if (!has(b, sw_json_element(a, i)))
            return false;
    for (size_t i = 0; i < sw_json_size(b); i++)
        if (!has(a, sw_json_element(b, i)))
            return false;
    return true;
}

static bool is_right_rule(const struct sw_json *rule, const struct sw_json *wanted)
{
    static const char *const sets[] = {"apiGroups", "apiVersions", "resources", "operations"};
    const char *scope = sw_json_get_string(rule, "scope");

    for (size_t i = 0; i < SW_ARRAY_SIZE(sets); i++)
        if (!is_same_set(sw_json_get(rule, sets[i]), sw_json_get(wanted, sets[i])))
            return false;
    /* One resource has one scope: to name it, or to name none, is the same. */
    return !scope || strcmp(scope, "*") == 0 ||
           strcmp(scope, sw_json_get_string(wanted, "scope")) == 0;
}

static bool are_right_rules(struct sw_arena *arena, const struct sw_raw *rules,
                            const struct sw_json *wanted)
{
    struct sw_json *there;

    return rules->text && !sw_json_parse(arena, rules->text, rules->len, &there, NULL) &&
           sw_json_size(there) == 1 && is_right_rule(sw_json_element(there, 0), wanted);
}

/* ---- where it is reached ---- */

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* How much of it is scheme and authority; the API server takes neither a query nor a fragment. */
static size_t origin_len(const char *url)
{
    const char *slashes = strstr(url, "://");
    const char *authority = slashes ? slashes + 3 : url;

    return (size_t)(authority - url) + strcspn(authority, "/?#");
}

/* ---- one entry ---- */

struct mending {
    struct sw_arena *arena;
    struct sw_json *patch;
    size_t index; /* of the entry */
    const char *name;
    bool is_touched; /* the entry is */
    struct sw_buf changes;
};

static struct sw_json *add_operation(struct mending *m, const char *op, const char *what)
{
    struct sw_json *operation = sw_json_append_object(m->patch);

    sw_json_set_string(operation, "op", op);
    sw_json_set_string(operation, "path",
                       sw_arena_printf(m->arena, "/webhooks/%zu/%s", m->index, what));
    return operation;
}

/* "add" replaces a member that is there. what: its path within the entry. */
static struct sw_json *change(struct mending *m, const char *what)
{
    const char *last = strrchr(what, '/');

    if (!m->is_touched) {
        sw_json_set_string(add_operation(m, "test", "name"), "value", m->name);
        sw_buf_printf(&m->changes, "%s%s: ", m->changes.len ? "; " : "", m->name);
    } else {
        sw_buf_puts(&m->changes, ", ");
    }
    m->is_touched = true;
    sw_buf_puts(&m->changes, last ? last + 1 : what);
    return add_operation(m, "add", what);
}

static void mend_entry(struct mending *m, const struct sw_webhook_entry *entry,
                       const struct sw_admission *admission, const char *ca_bundle)
{
    struct sw_json *rule = rule_of(m->arena, admission);
    const char *policy = admission->is_reinvoked ? "IfNeeded" : "Never";
    const char *path = admission->path;
    size_t origin = origin_len(entry->url);
    /* Never is what holds where nothing is said. */
    const char *policy_there = entry->reinvocation_policy[0] ? entry->reinvocation_policy : "Never";

    m->name = entry->name;
    m->is_touched = false;
    if (ca_bundle && strcmp(entry->ca_bundle, ca_bundle) != 0)
        sw_json_set_string(change(m, "clientConfig/caBundle"), "value", ca_bundle);
    if (entry->has_service && strcmp(entry->service_path, path) != 0)
        sw_json_set_string(change(m, "clientConfig/service/path"), "value", path);
    if (entry->url[0] && !ends_in(entry->url + origin, path))
        sw_json_set_string(change(m, "clientConfig/url"), "value",
                           sw_arena_printf(m->arena, "%.*s%s", (int)origin, entry->url, path));
    if (!are_right_rules(m->arena, &entry->rules, rule)) {
        struct sw_json *rules = sw_json_array(m->arena);
        sw_json_append(rules, rule);
        sw_json_set(change(m, "rules"), "value", rules);
    }
    if (admission->is_mutating && strcmp(policy_there, policy) != 0)
        sw_json_set_string(change(m, "reinvocationPolicy"), "value", policy);
}

/* ---- all ---- */

static bool asks(const struct sw_webhook_entry *entry, const char *path)
{
    if (entry->has_service)
        return strcmp(entry->service_path, path) == 0;
    return ends_in(entry->url + origin_len(entry->url), path);
}

const struct sw_webhook_entry *sw_webhook_find(const struct sw_webhook_object *object,
                                               const struct sw_admission *admission)
{
    const struct sw_webhook_entry *entries = object->entries.at;

    for (size_t i = 0; i < object->entries.count; i++)
        if (strcmp(entries[i].name, admission->webhook_name) == 0)
            return &entries[i];
    for (size_t i = 0; i < object->entries.count; i++)
        if (asks(&entries[i], admission->path))
            return &entries[i];
    return NULL;
}

struct sw_webhook_mend sw_webhook_mend(struct sw_arena *arena,
                                       const struct sw_webhook_object *object,
                                       const struct sw_admission *const *wanted, size_t count,
                                       const char *ca_bundle)
{
    struct mending m = {.arena = arena, .patch = sw_json_array(arena)};
    struct sw_webhook_mend mend = {.is_injected = is_injected(&object->meta)};
    struct sw_buf missing;

    sw_buf_init(&m.changes, SIZE_MAX);
    sw_buf_init(&missing, SIZE_MAX);
    if (mend.is_injected)
        ca_bundle = NULL;
    for (size_t i = 0; i < count; i++) {
        const char *name = wanted[i]->webhook_name;
        const struct sw_webhook_entry *entry = sw_webhook_find(object, wanted[i]);
        if (!entry) {
            sw_buf_printf(&missing, "%s%s", missing.len ? ", " : "", name);
            continue;
        }
        m.index = (size_t)(entry - (const struct sw_webhook_entry *)object->entries.at);
        mend_entry(&m, entry, wanted[i], ca_bundle);
    }
    mend.patch = sw_json_size(m.patch) > 0 ? m.patch : NULL;
    mend.changes = sw_arena_strdup(arena, m.changes.bytes);
    mend.missing = sw_arena_strdup(arena, missing.bytes);
    sw_buf_done(&m.changes);
    sw_buf_done(&missing);
    return mend;
}
