/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON of a Lease (coordination.k8s.io/v1). Times are MicroTime, with exactly six decimals:
 * the API server answers 400 to anything else.
 */
#include "kube/lease_record.h"

#include <slipway/json.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "base/util.h"

void sw_lease_record_clear(struct sw_lease_record *record)
{
    sw_free(record->text);
    sw_free(record->version);
    sw_free(record->spec);
    sw_free(record->holder);
    *record = (struct sw_lease_record){0};
}

int sw_lease_record_read(struct sw_lease_record *record, const char *text, size_t len,
                         struct sw_error *error)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *lease;
    const char *why = "";
    int rc = sw_json_parse(arena, text, len, &lease, &why);
    const struct sw_json *version =
        rc ? NULL : sw_json_at(lease, "metadata", "resourceVersion", NULL);
    if (!rc && !version) {
        why = "it has no metadata.resourceVersion";
        rc = -1;
    }
    if (rc) {
        rc = sw_error_set(error, SW_E_SYNTAX, "the answer is not a Lease: %s", why);
        sw_arena_free(arena);
        return rc;
    }
    const struct sw_json *spec = sw_json_get(lease, "spec");
    const char *holder = sw_json_get_string(spec, "holderIdentity");
    int64_t duration_s = sw_json_get_int(spec, "leaseDurationSeconds", 0);
    sw_lease_record_clear(record);
    record->text = sw_strndup(text, len);
    record->version = sw_strdup(sw_json_text(version));
    record->spec = sw_strdup(spec ? sw_json_dump(spec, arena, NULL) : "");
    record->holder = sw_strdup(holder ? holder : "");
    bool is_meant = duration_s > 0 && duration_s <= SW_LEASE_DURATION_MAX_MS / 1000;
    record->duration_ms = is_meant ? duration_s * 1000 : 0;
    record->transitions = SW_MAX(sw_json_get_int(spec, "leaseTransitions", 0), 0);
    sw_arena_free(arena);
    return 0;
}

static struct sw_json *object_to_send(struct sw_arena *arena, const struct sw_lease_record *record,
                                      const struct sw_lease_change *change)
{
    struct sw_json *lease;
    if (change->what != SW_LEASE_CREATE) {
        /* It was parsed when it came. */
        sw_assert(sw_json_parse(arena, record->text, strlen(record->text), &lease, NULL) == 0);
        return lease;
    }
    lease = sw_json_object(arena);
    sw_json_set_string(lease, "apiVersion", "coordination.k8s.io/v1");
    sw_json_set_string(lease, "kind", "Lease");
    struct sw_json *metadata = sw_json_set_object(lease, "metadata");
    sw_json_set_string(metadata, "namespace", change->namespace_);
    sw_json_set_string(metadata, "name", change->name);
    return lease;
}

char *sw_lease_record_write(const struct sw_lease_record *record,
                            const struct sw_lease_change *change, size_t *ret_len)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *lease = object_to_send(arena, record, change);
    struct sw_json *spec = sw_json_set_object(lease, "spec");
    char now[SW_TIME_SIZE];
    sw_time_format_micro(change->wall_us, now);
    if (change->what == SW_LEASE_RELEASE) {
        /* null and not "": newer API servers refuse an empty holder, and all read both alike. */
        sw_json_set(spec, "holderIdentity", NULL);
    } else {
        sw_json_set_string(spec, "holderIdentity", change->identity);
    }
    if (change->what == SW_LEASE_CREATE || change->what == SW_LEASE_TAKE) {
        sw_json_set_string(spec, "acquireTime", now);
    }
    sw_json_set_string(spec, "renewTime", now);
    sw_json_set_int(spec, "leaseDurationSeconds", change->duration_s);
    sw_json_set_int(spec, "leaseTransitions", change->transitions);
    size_t len;
    char *text = sw_strdup(sw_json_dump(lease, arena, &len));
    sw_arena_free(arena);
    *ret_len = len;
    return text;
}
