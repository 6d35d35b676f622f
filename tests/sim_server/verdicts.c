/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the coordination module sees in a Deployment, for test_verdicts.py. A line of stdin is
 *     MILLISECONDS OBJECT
 * the object as the API server shows it, looked at so long after the line before; it is the active
 * one of its coordination. A line of stdout is the verdict: gone, unknown (not observed), complete,
 * failed, rolling or settled; "bad" and why where it is no Deployment. Lines with the same uid in
 * succession are one Deployment, seen again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "kube/decode.h"
#include "work.h"

#define NAMESPACE "n"
#define WALL_US INT64_C(1700000000000000)

static const char *verdict(const struct member *member)
{
    if (member->is_leaving_cluster)
        return "gone";
    if (!member->is_observed)
        return "unknown";
    if (member->is_complete)
        return "complete";
    if (member->is_failed)
        return "failed";
    return member->is_rolling ? "rolling" : "settled";
}

/* The first steps of coord_plan, which end with the states. */
static const char *look(struct coord_memory *memory, const struct coord_snapshot *snapshot)
{
    struct coord_result result = {0};
    struct sw_arena *arena = sw_arena_new(0);
    struct work work = {
        .memory = memory,
        .snapshot = snapshot,
        .arena = arena,
        .result = &result,
        .next_action = &result.actions,
        .next_remark = &result.remarks,
    };

    coord_memory_sync(&work);
    coord_select(&work);
    coord_states(&work);
    const char *text = verdict(coord_memory_find(&work, snapshot->deployments->object->meta.name));
    sw_arena_free(arena);
    return text;
}

int main(void)
{
    struct sw_intern *intern = sw_intern_new();
    struct sw_decoder *decoder = sw_decoder_new(&sw_kind_deployment, intern);
    struct coord_memory *memory = coord_memory_new();
    struct sw_selector *selector = NULL;
    struct coordination c = {
        .meta = {.namespace_ = NAMESPACE,
                 .name = "c",
                 .uid = "c",
                 .resource_version = "1",
                 .generation = 1,
                 .owner_uid = ""},
        .max_active = 1,
        .availability_guard = "",
        .at_rest = "",
        .failure_policy = "",
        .observed_generation = 1,
    };
    struct coord_seen_deployment seen = {NULL, SW_VERDICT_FREE, "", ""};
    struct coord_snapshot snapshot = {
        .namespace_ = NAMESPACE,
        .now_ms = 1000000,
        .wall_us = WALL_US,
        .lists = 1,
        .group_count = 1,
        .deployments = &seen,
        .deployment_count = 1,
    };
    struct sw_error error = {0};
    struct sw_object *object = NULL, *next;
    char *line = NULL, *json, why[256], active[512];
    size_t size = 0;
    ssize_t len;

    if (sw_selector_parse_text("", &selector, why, sizeof why))
        return 1;
    const struct coord_seen_group group = {&c, selector, ""};
    snapshot.groups = &group;
    while ((len = getline(&line, &size, stdin)) > 0) {
        uint64_t pause_ms = strtoull(line, &json, 10);
        if (sw_decode_object(decoder, json, (size_t)(line + len - json), NAMESPACE, &next,
                             &error)) {
            printf("bad: %s\n", error.text);
            continue;
        }
        snapshot.now_ms += pause_ms;
        snapshot.wall_us += (int64_t)pause_ms * 1000;
        seen.object = sw_as_deployment(next);
        snprintf(active, sizeof active, NAMESPACE "/%s", next->name);
        c.active_deployment = active;
        puts(look(memory, &snapshot));
        sw_object_free(decoder, object);
        object = next;
    }
    free(line);
    coord_memory_free(memory);
    sw_object_free(decoder, object);
    sw_selector_free(selector);
    sw_decoder_free(decoder);
    sw_intern_free(intern);
    return 0;
}
