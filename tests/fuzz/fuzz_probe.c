/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths and queries of probes, which anybody may ask: "PATH?QUERY". One check is well and one is
 * not.
 */
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "fuzz.h"
#include "runtime/health.h"

static bool is_well(void *arg, struct sw_buf *why)
{
    sw_buf_puts(why, "it is not");
    return arg != NULL;
}

static int ask(const struct sw_health *health, const char *path, const char *query)
{
    struct sw_buf out;

    sw_buf_init(&out, 1 << 20);
    int status = sw_health_answer(health, path, query, &out);
    sw_assert(status == 200 || status == 404 || status == 500);
    sw_assert(out.len > 0 && strlen(out.bytes) == out.len);
    sw_buf_done(&out);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *path = sw_strndup((const char *)bytes, len);
    char *mark = strchr(path, '?');
    const char *query = mark ? mark + 1 : "";
    static int something;
    struct sw_health health = {0};

    if (mark)
        *mark = '\0';
    sw_health_add(&health, &(struct sw_check){"well", false, is_well, &something});
    sw_assert(ask(&health, "/readyz", query) == 200);
    sw_health_add(&health, &(struct sw_check){"unwell", false, is_well, NULL});
    ask(&health, path, query);
    sw_assert(ask(&health, "/readyz/unwell", query) == 500);
    /* Behind whatever stands before it, it is still excluded. */
    char *excluded = sw_asprintf("%s&exclude=unwell", query);
    sw_assert(ask(&health, "/readyz", excluded) == 200);
    sw_free(excluded);
    sw_free(path);
    return 0;
}
