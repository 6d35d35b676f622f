/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as the real API server words them: metav1.Status with reason, details and causes.
 * Texts: k8s.io/apimachinery/pkg/api/errors.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api_internal.h"
#include "base/buf.h"
#include "base/util.h"
#include "value.h"

json_t *sw_sim_status(int code, const char *reason, const char *message)
{
    json_t *status = json_pack("{s:s,s:s,s:{},s:s,s:s}", "kind", "Status", "apiVersion", "v1",
                               "metadata", "status", "Failure", "message", message);
    if (!status) { /* a name from outside that is not UTF-8 */
        return sw_sim_status(code, reason, "the message cannot be shown");
    }
    if (*reason) {
        sw_sim_put_text(status, "reason", reason);
    }
    json_object_set_new(status, "code", json_integer(code));
    return status;
}

json_t *sw_sim_statusf(int code, const char *reason, const char *format, ...)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    va_list args;
    va_start(args, format);
    sw_buf_vprintf(&text, format, args);
    va_end(args);
    json_t *status = sw_sim_status(code, reason, text.bytes);
    sw_buf_done(&text);
    return status;
}

char *sw_sim_qualified(const char *plural_or_kind, const char *group)
{
    return *group ? sw_asprintf("%s.%s", plural_or_kind, group) : sw_strdup(plural_or_kind);
}

/* Puts them where the real server has them, before the code. */
static json_t *with_details(json_t *status, const char *name, const char *group, const char *kind)
{
    json_t *details = json_object();
    if (*name) {
        sw_sim_put_text(details, "name", name);
    }
    if (*group) {
        sw_sim_put_text(details, "group", group);
    }
    if (*kind) {
        sw_sim_put_text(details, "kind", kind);
    }
    json_t *code = json_incref(json_object_get(status, "code"));
    json_object_del(status, "code");
    json_object_set_new(status, "details", details);
    json_object_set_new(status, "code", code);
    return status;
}

json_t *sw_sim_plain_status(int code, const char *reason, const char *message)
{
    return with_details(sw_sim_status(code, reason, message), "", "", "");
}

/* `deployments.apps "x" TEXT` */
static json_t *about(int code, const char *reason, const struct sw_sim_kind *kind, const char *name,
                     const char *before, const char *after)
{
    SW_AUTO(char, sw_free) resource = sw_sim_qualified(kind->plural, kind->group);
    json_t *status =
        *name ? sw_sim_statusf(code, reason, "%s%s \"%s\"%s", before, resource, name, after)
              : sw_sim_statusf(code, reason, "%s%s \"\"%s", before, resource, after);
    return with_details(status, name, kind->group, kind->plural);
}

json_t *sw_sim_not_found(const struct sw_sim_kind *kind, const char *name)
{
    return about(404, "NotFound", kind, name, "", " not found");
}

json_t *sw_sim_already_exists(const struct sw_sim_kind *kind, const char *name)
{
    return about(409, "AlreadyExists", kind, name, "", " already exists");
}

json_t *sw_sim_conflict(const struct sw_sim_kind *kind, const char *name, const char *why)
{
    SW_AUTO(char, sw_free) text = sw_asprintf(": %s", why);
    return about(409, "Conflict", kind, name, "Operation cannot be fulfilled on ", text);
}

json_t *sw_sim_modified(const struct sw_sim_kind *kind, const char *name)
{
    return sw_sim_conflict(kind, name,
                           "the object has been modified; please apply your changes to the latest "
                           "version and try again");
}

json_t *sw_sim_forbidden(const struct sw_sim_kind *kind, const char *name, const char *why)
{
    if (!*name) {
        SW_AUTO(char, sw_free) resource = sw_sim_qualified(kind->plural, kind->group);
        return with_details(sw_sim_statusf(403, "Forbidden", "%s is forbidden: %s", resource, why),
                            name, kind->group, kind->plural);
    }
    SW_AUTO(char, sw_free) text = sw_asprintf(" is forbidden: %s", why);
    return about(403, "Forbidden", kind, name, "", text);
}

json_t *sw_sim_invalid(const struct sw_sim_kind *kind, const char *name, const json_t *causes)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    size_t count = json_array_size(causes);
    for (size_t i = 0; i < count; i++) {
        const json_t *cause = json_array_get(causes, i);
        sw_buf_printf(&text, "%s%s: %s", i ? ", " : "", sw_sim_text(cause, "field", ""),
                      sw_sim_text(cause, "message", ""));
    }
    SW_AUTO(char, sw_free) resource = sw_sim_qualified(kind->kind, kind->group);
    json_t *status = sw_sim_statusf(
        422, "Invalid", count == 1 ? "%s \"%s\" is invalid: %s" : "%s \"%s\" is invalid: [%s]",
        resource, name, text.bytes);
    sw_buf_done(&text);
    with_details(status, name, kind->group, kind->kind);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const json_t *cause = json_array_get(causes, i);
        json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "reason",
                                              sw_sim_text(cause, "reason", "FieldValueInvalid"),
                                              "message", sw_sim_text(cause, "message", ""), "field",
                                              sw_sim_text(cause, "field", "")));
    }
    json_object_set_new(json_object_get(status, "details"), "causes", list);
    return status;
}

json_t *sw_sim_internal_error(const char *why)
{
    json_t *status = sw_sim_statusf(500, "InternalError", "Internal error occurred: %s", why);
    with_details(status, "", "", "");
    json_object_set_new(json_object_get(status, "details"), "causes",
                        json_pack("[{s:s}]", "message", why));
    return status;
}

/* One cause: who owns the field. */
static void add_conflict(json_t *causes, const char *owner, size_t owner_len, const char *field,
                         size_t field_len)
{
    SW_AUTO(char, sw_free) message = sw_asprintf("conflict with %.*s", (int)owner_len, owner);
    json_array_append_new(causes, json_pack("{s:s,s:s,s:s%}", "reason", "FieldManagerConflict",
                                            "message", message, "field", field, field_len));
}

json_t *sw_sim_apply_conflict(const char *text)
{
    json_t *status = sw_sim_status(409, "Conflict", text);
    json_t *causes = json_array();
    const char *owner = strstr(text, "conflict with ");
    const char *colon = owner ? strstr(owner, ": ") : NULL;
    if (colon) {
        owner += strlen("conflict with ");
        add_conflict(causes, owner, (size_t)(colon - owner), colon + 2, strlen(colon + 2));
    }
    for (const char *at = strstr(text, "conflicts with "); at;
         at = strstr(at, "\nconflicts with ")) {
        at += strlen("conflicts with ") + (*at == '\n');
        size_t owner_len = strcspn(at, "\n");
        const char *line = at + owner_len;
        while (strncmp(line, "\n- ", 3) == 0) {
            size_t len = strcspn(line + 3, "\n");
            add_conflict(causes, at, owner_len ? owner_len - 1 : 0, line + 3, len);
            line += 3 + len;
        }
        at = line;
    }
    with_details(status, "", "", "");
    json_object_set_new(json_object_get(status, "details"), "causes", causes);
    return status;
}

json_t *sw_sim_expired(const char *message)
{
    return sw_sim_status(410, "Expired", message);
}

json_t *sw_sim_too_large_version(uint64_t asked, uint64_t current)
{
    json_t *status = sw_sim_statusf(
        504, "Timeout", "Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64,
        asked, current);
    with_details(status, "", "", "");
    json_t *details = json_object_get(status, "details");
    json_object_set_new(details, "causes",
                        json_pack("[{s:s,s:s}]", "reason", "ResourceVersionTooLarge", "message",
                                  "Too large resource version"));
    json_object_set_new(details, "retryAfterSeconds", json_integer(1));
    return status;
}

int sw_sim_status_code(const json_t *status)
{
    return (int)json_integer_value(json_object_get(status, "code"));
}
