/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query templates: any text becomes a query of bounded length, or is refused with a reason. What
 * has no braces is the query itself.
 */
#include <errno.h>
#include <string.h>

#include <slipway/memory.h>

#include "base/util.h"
#include "fuzz.h"
#include "template.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const struct sw_label variables[] = {{"code", "5.."}, {"x-y", "{{ name }}"}};
    static const struct step_template_model model = {
        .name = "web",
        .namespace_ = "shop",
        .target = "web",
        .service = "web",
        .ingress = "web",
        .route = "web",
        .interval = "1m",
        .variables = {variables, 2},
    };
    struct sw_arena *arena = sw_arena_new(0);
    char *query = sw_strndup((const char *)bytes, len);
    const char *text = NULL;
    const char *why = NULL;
    int code = step_template_render(query, &model, arena, &text, &why);

    if (code == 0)
        sw_assert(text && !why && strlen(text) <= STEP_QUERY_LIMIT);
    else
        sw_assert(code == -EINVAL && !text && why && why[0]);
    if (!strstr(query, "{{"))
        sw_assert(strlen(query) > STEP_QUERY_LIMIT || (code == 0 && strcmp(text, query) == 0));
    sw_free(query);
    sw_arena_free(arena);
    return 0;
}
