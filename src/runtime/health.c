/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of probes.
 */
#include "runtime/health.h"

#include <string.h>

#include "base/buf.h"
#include "base/util.h"

enum { WHY_LIMIT_BYTES = 1024 };

void sw_health_add(struct sw_health *health, const struct sw_check *check)
{
    sw_assert(health->count < SW_CHECKS_MAX);
    health->checks[health->count++] = *check;
}

/* Without values: "verbose", "verbose=", "verbose=1&...". */
static bool has_parameter(const char *query, const char *name)
{
    size_t len = strlen(name);

    while (*query) {
        size_t part = strcspn(query, "&");
        if (part >= len && memcmp(query, name, len) == 0 && (part == len || query[len] == '='))
            return true;
        query += part + (query[part] == '&');
    }
    return false;
}

static bool run(const struct sw_check *check, struct sw_buf *out)
{
    struct sw_buf why;

    sw_buf_init(&why, WHY_LIMIT_BYTES);
    bool is_well = check->fn(check->arg, &why);
    if (is_well)
        sw_buf_printf(out, "[+]%s ok\n", check->name);
    else
        sw_buf_printf(out, "[-]%s failed: %s\n", check->name, why.bytes);
    sw_buf_done(&why);
    return is_well;
}

/* All checks of a probe, or the one of that name. */
static int probe(const struct sw_health *health, const char *probe_name, bool is_liveness,
                 const char *only, bool is_verbose, struct sw_buf *out)
{
    bool is_known = !only, is_well = true;

    for (size_t i = 0; i < health->count; i++) {
        const struct sw_check *check = &health->checks[i];
        if (check->is_liveness != is_liveness || (only && strcmp(check->name, only) != 0))
            continue;
        is_known = true;
        is_well = run(check, out) && is_well;
    }
    if (!is_known) {
        sw_buf_printf(out, "there is no check %s\n", only);
        return 404;
    }
    if (!is_well) {
        sw_buf_printf(out, "%s check failed\n", probe_name);
        return 500;
    }
    if (is_verbose) {
        sw_buf_printf(out, "%s check passed\n", probe_name);
        return 200;
    }
    sw_buf_clear(out);
    sw_buf_puts(out, "ok");
    return 200;
}

int sw_health_answer(const struct sw_health *health, const char *path, const char *query,
                     struct sw_buf *out)
{
    static const struct {
        const char *path;
        bool is_liveness;
    } probes[] = {{"/healthz", true}, {"/livez", true}, {"/readyz", false}};

    for (size_t i = 0; i < SW_ARRAY_SIZE(probes); i++) {
        size_t len = strlen(probes[i].path);
        if (strncmp(path, probes[i].path, len) != 0 || (path[len] && path[len] != '/'))
            continue;
        const char *only = path[len] && path[len + 1] ? path + len + 1 : NULL;
        return probe(health, probes[i].path + 1, probes[i].is_liveness, only,
                     has_parameter(query, "verbose"), out);
    }
    sw_buf_puts(out, "try /healthz, /readyz, /readyz?verbose\n");
    return 404;
}

bool sw_health_is_ready(const struct sw_health *health, struct sw_buf *why)
{
    for (size_t i = 0; i < health->count; i++) {
        const struct sw_check *check = &health->checks[i];
        sw_buf_clear(why);
        if (!check->is_liveness && !check->fn(check->arg, why))
            return false;
    }
    return true;
}
