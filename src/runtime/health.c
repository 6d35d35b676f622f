/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of probes.
 */
#include "runtime/health.h"

#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "net/url.h"

enum { WHY_LIMIT_BYTES = 1024 };

void sw_health_add(struct sw_health *health, const struct sw_check *check)
{
    sw_assert(health->count < SW_CHECKS_MAX);
    health->checks[health->count++] = *check;
}

/* ---- the query ---- */

/* The next parameter of that name; its value, decoded, is new and may be "". NULL: there is no
 * other. *at goes on behind it. */
static char *next_parameter(const char **at, const char *name)
{
    size_t len = strlen(name);

    while (**at) {
        const char *part = *at;
        size_t part_len = strcspn(part, "&");
        bool is_it = part_len >= len && memcmp(part, name, len) == 0 &&
                     (part_len == len || part[len] == '=');
        size_t begin = SW_MIN(len + 1, part_len);
        char *value;
        *at += part_len + (part[part_len] == '&');
        if (is_it && !sw_url_decode(part + begin, part_len - begin, &value))
            return value;
    }
    return NULL;
}

/* With or without a value: "verbose", "verbose=1&...". */
static bool is_verbose(const char *query)
{
    SW_AUTO(char, sw_free) value = next_parameter(&query, "verbose");

    return value != NULL;
}

static bool is_excluded(const char *query, const char *check)
{
    char *name;
    bool is_one = false;

    while (!is_one && (name = next_parameter(&query, "exclude"))) {
        is_one = strcmp(name, check) == 0;
        sw_free(name);
    }
    return is_one;
}

/* ---- checks ---- */

struct probe {
    const char *path;
    bool is_liveness;
};

/* NULL: the probe has none of that name. */
static const struct sw_check *find(const struct sw_health *health, const struct probe *probe,
                                   const char *name)
{
    for (size_t i = 0; i < health->count; i++)
        if (health->checks[i].is_liveness == probe->is_liveness &&
            strcmp(health->checks[i].name, name) == 0)
            return &health->checks[i];
    return NULL;
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

static void warn_of_unknown(const struct sw_health *health, const struct probe *probe,
                            const char *query, struct sw_buf *out)
{
    const char *before = "warn: some health checks cannot be excluded: no matches for \"",
               *end = "";
    char *name;

    while ((name = next_parameter(&query, "exclude"))) {
        if (!find(health, probe, name)) {
            sw_buf_printf(out, "%s%s\"", before, name);
            before = ",\"";
            end = "\n";
        }
        sw_free(name);
    }
    sw_buf_puts(out, end);
}

static int answer_all(const struct sw_health *health, const struct probe *probe, const char *query,
                      struct sw_buf *out)
{
    bool is_well = true;

    for (size_t i = 0; i < health->count; i++) {
        const struct sw_check *check = &health->checks[i];
        if (check->is_liveness != probe->is_liveness)
            continue;
        if (is_excluded(query, check->name))
            sw_buf_printf(out, "[+]%s excluded: ok\n", check->name);
        else
            is_well = run(check, out) && is_well;
    }
    warn_of_unknown(health, probe, query, out);
    if (!is_well || is_verbose(query)) {
        sw_buf_printf(out, "%s check %s\n", probe->path + 1, is_well ? "passed" : "failed");
        return is_well ? 200 : 500;
    }
    sw_buf_clear(out);
    sw_buf_puts(out, "ok");
    return 200;
}

static int answer_one(const struct sw_health *health, const struct probe *probe, const char *name,
                      struct sw_buf *out)
{
    const struct sw_check *check = find(health, probe, name);
    struct sw_buf why;

    if (!check) {
        sw_buf_printf(out, "there is no check %s; %s?verbose names them\n", name, probe->path);
        return 404;
    }
    sw_buf_init(&why, WHY_LIMIT_BYTES);
    bool is_well = check->fn(check->arg, &why);
    if (is_well)
        sw_buf_puts(out, "ok");
    else
        sw_buf_printf(out, "internal server error: %s\n", why.bytes);
    sw_buf_done(&why);
    return is_well ? 200 : 500;
}

int sw_health_answer(const struct sw_health *health, const char *path, const char *query,
                     struct sw_buf *out)
{
    static const struct probe probes[] = {{"/healthz", true}, {"/livez", true}, {"/readyz", false}};

    for (size_t i = 0; i < SW_ARRAY_SIZE(probes); i++) {
        size_t len = strlen(probes[i].path);
        if (strncmp(path, probes[i].path, len) != 0 || (path[len] && path[len] != '/'))
            continue;
        if (path[len] && path[len + 1])
            return answer_one(health, &probes[i], path + len + 1, out);
        return answer_all(health, &probes[i], query, out);
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
