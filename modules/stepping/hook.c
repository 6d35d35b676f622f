/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads and answers of webhooks.
 */
#include "hook.h"

#include <string.h>

#include <slipway/json.h>

#include "provider.h"

#define PAUSE_MOST_MS 30000

const char *step_hook_phase(enum step_hook_type type, const char *phase)
{
    switch (type) {
    case STEP_PRE_ROLLOUT:
    case STEP_ROLLOUT:
    case STEP_CONFIRM_STEP:
    case STEP_CONFIRM_PROMOTION:
        return "Progressing";
    case STEP_POST_ROLLOUT:
        return "Succeeded";
    case STEP_CONFIRM_ROLLOUT:
    case STEP_ROLLBACK_HOOK:
    case STEP_EVENT:
        break;
    }
    return phase;
}

static void set_metadata(struct sw_json *payload, const struct sw_labels *metadata,
                         const struct step_hook_event *event, struct sw_arena *arena)
{
    if (!metadata->count && !event)
        return;
    struct sw_json *object = sw_json_set_object(payload, "metadata");
    for (uint32_t i = 0; i < metadata->count; i++)
        sw_json_set_string(object, metadata->at[i].key, metadata->at[i].value);
    if (!event)
        return;
    sw_json_set_string(object, "eventMessage", event->message);
    sw_json_set_string(object, "eventType", event->is_warning ? "Warning" : "Normal");
    sw_json_set_string(object, "timestamp",
                       sw_arena_printf(arena, "%lld", (long long)(event->wall_us / 1000)));
}

const char *step_hook_payload(const struct step_hook *hook, const struct step_hook_subject *subject,
                              const struct step_hook_event *event, struct sw_arena *arena,
                              size_t *ret_len)
{
    struct sw_json *payload = sw_json_object(arena);

    sw_json_set_string(payload, "name", subject->name);
    sw_json_set_string(payload, "namespace", subject->namespace_);
    sw_json_set_string(payload, "phase", step_hook_phase(hook->type, subject->phase));
    sw_json_set_string(payload, "checksum", subject->checksum);
    set_metadata(payload, &hook->object->metadata, event, arena);
    return sw_json_dump(payload, arena, ret_len);
}

bool step_hook_is_yes(const struct sw_fetch_answer *answer)
{
    return answer->status >= 200 && answer->status < 300;
}

bool step_hook_may_repeat(const struct sw_fetch_answer *answer)
{
    return answer->status == 0 || answer->status == 429 ||
           (answer->status >= 500 && answer->status != 501);
}

uint32_t step_hook_pause_ms(int32_t attempt)
{
    return attempt >= 7 ? PAUSE_MOST_MS : 1000U << (attempt > 2 ? attempt - 2 : 0);
}

const char *step_hook_words(const struct sw_fetch_answer *answer, struct sw_arena *arena)
{
    if (!answer->status)
        return sw_arena_strdup(arena, answer->why);
    const char *words = step_body_words(arena, answer->body, answer->body_len);
    return sw_arena_printf(arena, "HTTP %d%s%s", answer->status, words[0] ? ": " : "", words);
}
