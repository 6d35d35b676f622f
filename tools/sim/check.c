/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold of the metadata of every object: names, labels, annotations, owners, finalizers.
 * Texts: k8s.io/apimachinery/pkg/util/validation and pkg/api/validation.
 */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "api_internal.h"
#include "base/util.h"
#include "value.h"

enum {
    SUBDOMAIN_MAX = 253,
    LABEL_MAX = 63,
    ANNOTATIONS_MAX = 256 * 1024, /* TotalAnnotationSizeLimitB */
};

#define LABEL_TEXT                                                                               \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and " \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "   \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN_TEXT                                                                            \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "  \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used " \
    "for validation is "                                                                          \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL_1035_TEXT                                                                          \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an " \
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "         \
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define QUALIFIED_TEXT                                                                            \
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end " \
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "    \
    "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define LABEL_VALUE_TEXT                                                                        \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or " \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "          \
    "'my_value',  or '12345', regex used for validation is "                                    \
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

static bool is_low(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_label(const char *text, size_t len)
{
    if (len == 0 || !is_low(text[0]) || !is_low(text[len - 1])) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_low(text[i]) && text[i] != '-') {
            return false;
        }
    }
    return true;
}

static bool is_subdomain(const char *text)
{
    while (true) {
        size_t len = strcspn(text, ".");
        if (!is_label(text, len)) {
            return false;
        }
        if (!text[len]) {
            return true;
        }
        text += len + 1;
    }
}

static bool is_alnum(char c)
{
    return isalnum((unsigned char)c) != 0;
}

static bool is_name_part(const char *text, size_t len)
{
    if (len == 0 || !is_alnum(text[0]) || !is_alnum(text[len - 1])) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_alnum(text[i]) && !strchr("-_.", text[i])) {
            return false;
        }
    }
    return true;
}

static void invalid(json_t *causes, const char *field, const char *value, const char *detail)
{
    json_t *text = json_string(value);
    sw_sim_cause_invalid(causes, field, text, detail);
    json_decref(text);
}

static void check_length(json_t *causes, const char *field, const char *value, size_t limit)
{
    if (strlen(value) > limit) {
        SW_AUTO(char, sw_free)
        detail = sw_asprintf("must be no more than %zu characters", limit);
        invalid(causes, field, value, detail);
    }
}

/* What the names of a kind may look like. */
static void check_name(const struct sw_sim_kind *kind, json_t *causes, const char *field,
                       const char *name)
{
    bool is_core = !*kind->group;
    if (strcmp(kind->group, "rbac.authorization.k8s.io") == 0) {
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
            SW_AUTO(char, sw_free) detail = sw_asprintf("may not be '%s'", name);
            invalid(causes, field, name, detail);
        } else if (strpbrk(name, "/%")) {
            invalid(causes, field, name,
                    strchr(name, '/') ? "may not contain '/'" : "may not contain '%'");
        }
    } else if (is_core && strcmp(kind->plural, "namespaces") == 0) {
        check_length(causes, field, name, LABEL_MAX);
        if (!is_label(name, strlen(name))) {
            invalid(causes, field, name, LABEL_TEXT);
        }
    } else if (is_core && strcmp(kind->plural, "services") == 0) {
        check_length(causes, field, name, LABEL_MAX);
        if (!is_label(name, strlen(name)) || (name[0] >= '0' && name[0] <= '9')) {
            invalid(causes, field, name, LABEL_1035_TEXT);
        }
    } else {
        check_length(causes, field, name, SUBDOMAIN_MAX);
        if (!is_subdomain(name)) {
            invalid(causes, field, name, SUBDOMAIN_TEXT);
        }
    }
}

static void check_qualified(json_t *causes, const char *field, const char *key)
{
    const char *slash = strchr(key, '/');
    const char *part = slash ? slash + 1 : key;
    if (slash) {
        SW_AUTO(char, sw_free) prefix = sw_strndup(key, (size_t)(slash - key));
        if (!*prefix) {
            invalid(causes, field, key, "prefix part must be non-empty");
        } else if (!is_subdomain(prefix)) {
            invalid(causes, field, key, "prefix part " SUBDOMAIN_TEXT);
        }
    }
    if (!*part) {
        invalid(causes, field, key, "name part must be non-empty");
    } else if (strlen(part) > LABEL_MAX) {
        invalid(causes, field, key, "name part must be no more than 63 characters");
    }
    if (!is_name_part(part, strlen(part))) {
        invalid(causes, field, key, QUALIFIED_TEXT);
    }
}

static void check_labels(json_t *causes, const json_t *labels)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)labels, key, value)
    {
        check_qualified(causes, "metadata.labels", key);
        const char *text = json_string_value(value);
        if (!text) {
            sw_sim_cause_invalid(causes, "metadata.labels", value, "must be a string");
            continue;
        }
        check_length(causes, "metadata.labels", text, LABEL_MAX);
        if (*text && !is_name_part(text, strlen(text))) {
            invalid(causes, "metadata.labels", text, LABEL_VALUE_TEXT);
        }
    }
}

static void check_annotations(json_t *causes, const json_t *annotations)
{
    size_t total = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)annotations, key, value)
    {
        SW_AUTO(char, sw_free) low = sw_strdup(key);
        for (char *at = low; *at; at++) {
            *at = (char)tolower((unsigned char)*at);
        }
        check_qualified(causes, "metadata.annotations", low);
        if (!json_is_string(value)) {
            sw_sim_cause_invalid(causes, "metadata.annotations", value, "must be a string");
        }
        total += strlen(key) + json_string_length(value);
    }
    if (total > ANNOTATIONS_MAX) {
        sw_sim_cause(causes, "metadata.annotations", "FieldValueTooLong",
                     "Too long: must have at most %d bytes", ANNOTATIONS_MAX);
    }
}

static void check_owners(json_t *causes, const json_t *owners)
{
    static const char *const needed[] = {"apiVersion", "kind", "name", "uid"};
    size_t controllers = 0;
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const json_t *owner = json_array_get(owners, i);
        for (size_t k = 0; k < SW_ARRAY_SIZE(needed); k++) {
            if (!*sw_sim_text(owner, needed[k], "")) {
                SW_AUTO(char, sw_free)
                field = sw_asprintf("metadata.ownerReferences.%s", needed[k]);
                invalid(causes, field, "",
                        k == 0 ? "version must not be empty" : "must not be empty");
            }
        }
        controllers += json_is_true(json_object_get(owner, "controller"));
    }
    if (controllers > 1) {
        sw_sim_cause_invalid(causes, "metadata.ownerReferences", owners,
                             "Only one reference can have Controller set to true");
    }
}

static void check_finalizers(json_t *causes, const json_t *finalizers)
{
    bool orphans = sw_sim_holds(finalizers, "orphan");
    bool is_foreground = sw_sim_holds(finalizers, "foregroundDeletion");
    for (size_t i = 0; i < json_array_size(finalizers); i++) {
        const char *text = json_string_value(json_array_get(finalizers, i));
        check_qualified(causes, "metadata.finalizers", text ? text : "");
        if (text && !strchr(text, '/') && strcmp(text, "orphan") != 0 &&
            strcmp(text, "foregroundDeletion") != 0 && strcmp(text, "kubernetes") != 0) {
            invalid(causes, "metadata.finalizers", text,
                    "name is neither a standard finalizer name nor is it fully qualified");
        }
    }
    if (orphans && is_foreground) {
        sw_sim_cause_invalid(causes, "metadata.finalizers", finalizers,
                             "finalizer orphan and foregroundDeletion cannot be both set");
    }
}

void sw_sim_check_metadata(const struct sw_sim_kind *kind, const json_t *object, json_t *causes)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *name = sw_sim_text(metadata, "name", "");
    const char *prefix = sw_sim_text(metadata, "generateName", "");
    if (!*name) {
        sw_sim_cause_required(causes, "metadata.name", "name or generateName is required");
    } else {
        check_name(kind, causes, "metadata.name", name);
    }
    if (*prefix) {
        /* With a character for what is put behind it; the prefix alone may end with a dash. */
        SW_AUTO(char, sw_free) whole = sw_asprintf("%sa", prefix);
        if (!is_subdomain(whole) && strcmp(kind->group, "rbac.authorization.k8s.io") != 0) {
            invalid(causes, "metadata.generateName", prefix, SUBDOMAIN_TEXT);
        }
    }
    check_labels(causes, json_object_get(metadata, "labels"));
    check_annotations(causes, json_object_get(metadata, "annotations"));
    check_owners(causes, json_object_get(metadata, "ownerReferences"));
    check_finalizers(causes, json_object_get(metadata, "finalizers"));
}

void sw_sim_check_metadata_update(const json_t *old, const json_t *object, json_t *causes)
{
    static const char *const fixed[] = {"metadata.name", "metadata.namespace", "metadata.uid",
                                        "metadata.creationTimestamp"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(fixed); i++) {
        const json_t *before = sw_sim_at(old, fixed[i]);
        const json_t *value = sw_sim_at(object, fixed[i]);
        if (before != value && !json_equal(before, value)) {
            sw_sim_cause_invalid(causes, fixed[i], value, "field is immutable");
        }
    }
    if (!sw_sim_at(old, "metadata.deletionTimestamp")) {
        return;
    }
    const json_t *before = sw_sim_at(old, "metadata.finalizers");
    const json_t *after = sw_sim_at(object, "metadata.finalizers");
    for (size_t i = 0; i < json_array_size(after); i++) {
        const char *text = json_string_value(json_array_get(after, i));
        if (text && !sw_sim_holds(before, text)) {
            sw_sim_cause(causes, "metadata.finalizers", "FieldValueForbidden",
                         "Forbidden: no new finalizers can be added if the object is being "
                         "deleted, found new finalizers []string{\"%s\"}",
                         text);
        }
    }
}
