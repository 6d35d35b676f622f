/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of owners, and the changes of a hold that policies ask for. The admission table is in
 * review.c.
 */
#include "hold.h"

#include <stdlib.h>
#include <string.h>

#include <slipway/json.h>

/* The mark names coordinations; as owners they bear this before the name. */
#define COORDINATION "coordination/"
#define COORDINATION_LEN (sizeof(COORDINATION) - 1)

/* ---- lists of tokens ---- */

struct token {
    const char *at;
    size_t len;
};

/* The next token of *list, which moves on behind it. Spaces around a token do not count. */
static bool next_token(const char **list, struct token *ret_token)
{
    const char *p = *list;

    while (*p == ',' || *p == ' ')
        p++;
    if (!*p)
        return false;
    size_t len = strcspn(p, ",");
    *list = p + len;
    while (len > 0 && p[len - 1] == ' ')
        len--;
    *ret_token = (struct token){p, len};
    return true;
}

static bool token_is_of_policy(struct token token, const char *policy)
{
    size_t len = strlen(policy);

    return token.len >= len && memcmp(token.at, policy, len) == 0 &&
           (token.len == len || token.at[len] == '/');
}

static bool list_has(const char *list, struct token wanted)
{
    struct token token;

    while (next_token(&list, &token))
        if (token.len == wanted.len && memcmp(token.at, wanted.at, token.len) == 0)
            return true;
    return false;
}

bool hold_list_has(const char *list, const char *token)
{
    return list_has(list, (struct token){token, strlen(token)});
}

bool hold_list_has_policy(const char *list, const char *policy)
{
    struct token token;

    while (next_token(&list, &token))
        if (token_is_of_policy(token, policy))
            return true;
    return false;
}

static int compare_tokens(struct token a, struct token b)
{
    int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);

    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_token_at(const void *a, const void *b)
{
    return compare_tokens(*(const struct token *)a, *(const struct token *)b);
}

/* How many tokens; written down where there is room for them. */
static size_t list_tokens(const char *list, struct token *ret_tokens)
{
    struct token token;
    size_t count = 0;

    while (next_token(&list, &token)) {
        if (ret_tokens)
            ret_tokens[count] = token;
        count++;
    }
    return count;
}

const char *hold_list_union(struct sw_arena *arena, const char *a, const char *b)
{
    char *text = sw_arena_alloc(arena, strlen(a) + strlen(b) + 2);
    size_t of_a = list_tokens(a, NULL), count = of_a + list_tokens(b, NULL), len = 0;
    struct token *tokens = SW_ARENA_ARRAY(arena, count + 1, struct token);

    list_tokens(a, tokens);
    list_tokens(b, tokens + of_a);
    qsort(tokens, count, sizeof *tokens, compare_token_at);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && compare_tokens(tokens[i - 1], tokens[i]) == 0)
            continue;
        if (len > 0)
            text[len++] = ',';
        memcpy(text + len, tokens[i].at, tokens[i].len);
        len += tokens[i].len;
    }
    return text;
}

const char *hold_list_without(struct sw_arena *arena, const char *list, const char *policy)
{
    char *text = sw_arena_alloc(arena, strlen(list) + 1);
    struct token token;
    size_t len = 0;

    while (next_token(&list, &token)) {
        if (token_is_of_policy(token, policy))
            continue;
        if (len > 0)
            text[len++] = ',';
        memcpy(text + len, token.at, token.len);
        len += token.len;
    }
    return text;
}

/* ---- what is on an object ---- */

static const char *annotation(const struct sw_object *object, const char *key)
{
    const char *value = sw_annotation(object, key);

    return value ? value : "";
}

void hold_state_of(const struct sw_deployment *deployment, struct hold_state *ret_state)
{
    const struct sw_object *object = &deployment->meta;

    *ret_state = (struct hold_state){
        .is_paused = deployment->is_paused,
        .held_by = annotation(object, SW_HELD_BY),
        .released_by = annotation(object, SW_RELEASED_BY),
        .coordinated_by = annotation(object, SW_COORDINATED_BY),
        .fence = annotation(object, SW_FENCE),
    };
}

bool hold_is_users_pause(const struct hold_state *state)
{
    return state->is_paused && !state->held_by[0];
}

bool hold_is_released(const struct hold_state *state)
{
    const char *list = state->coordinated_by;
    struct token name, owner;

    if (!state->released_by[0])
        return false;
    while (next_token(&list, &name)) {
        const char *owners = state->released_by;
        bool is_named = false;
        while (!is_named && next_token(&owners, &owner)) {
            is_named = owner.len == COORDINATION_LEN + name.len &&
                       memcmp(owner.at, COORDINATION, COORDINATION_LEN) == 0 &&
                       memcmp(owner.at + COORDINATION_LEN, name.at, name.len) == 0;
        }
        if (!is_named)
            return false;
    }
    return true;
}

/* ---- a change that a policy asks for ---- */

/* Pauses for the policy, and for everybody else who holds. */
static void pause_for(struct sw_arena *arena, struct hold_state *state, const char *owners,
                      const struct sw_opinion *others)
{
    if (others->verdict != SW_VERDICT_FREE)
        owners = hold_list_union(arena, owners, others->owners);
    else
        owners = hold_list_union(arena, owners, "");
    state->is_paused = true;
    state->held_by = owners;
}

static void free_for(struct sw_arena *arena, struct hold_state *state, const char *policy,
                     const struct sw_opinion *others)
{
    const char *rest = hold_list_without(arena, state->held_by, policy);

    if (others->verdict != SW_VERDICT_FREE)
        rest = hold_list_union(arena, rest, others->owners);
    state->held_by = rest;
    state->is_paused = rest[0] != '\0';
}

static bool states_differ(const struct hold_state *a, const struct hold_state *b)
{
    return a->is_paused != b->is_paused || strcmp(a->held_by, b->held_by) != 0 ||
           strcmp(a->released_by, b->released_by) != 0 ||
           strcmp(a->coordinated_by, b->coordinated_by) != 0 || strcmp(a->fence, b->fence) != 0;
}

enum hold_outcome hold_apply(struct sw_arena *arena, const struct hold_state *state,
                             const struct sw_hold_request *request, const char *policy,
                             const struct sw_opinion *others, struct hold_state *ret_state)
{
    struct hold_state to = *state;
    bool is_users = hold_is_users_pause(state);
    const char *released_by_rest = hold_list_without(arena, state->released_by, policy);

    switch (request->verb) {
    case SW_HOLD_PAUSE:
        to.released_by = released_by_rest;
        if (!is_users)
            pause_for(arena, &to, request->owners, others);
        break;
    case SW_HOLD_TAKE_BACK:
        to.released_by = released_by_rest;
        break;
    case SW_HOLD_RELEASE:
        if (is_users || others->verdict != SW_VERDICT_FREE)
            return HOLD_REFUSED;
        to.is_paused = false;
        to.held_by = "";
        to.released_by = hold_list_union(arena, released_by_rest, request->owners);
        break;
    case SW_HOLD_FREE:
        to.released_by = released_by_rest;
        if (state->held_by[0])
            free_for(arena, &to, policy, others);
        break;
    case SW_HOLD_ADOPT:
        if (is_users)
            to.held_by = request->owners;
        break;
    case SW_HOLD_FENCE:
    case SW_HOLD_MARK:
        break;
    }
    if (request->marks)
        to.coordinated_by = request->marks;
    if (request->fence)
        to.fence = request->fence;
    *ret_state = to;
    return states_differ(state, &to) ? HOLD_CHANGES : HOLD_UNCHANGED;
}

static void patch_annotation(struct sw_json **annotations, struct sw_json *patch, const char *key,
                             const char *from, const char *to)
{
    if (strcmp(from, to) == 0)
        return;
    if (!*annotations)
        *annotations = sw_json_set_object(sw_json_set_object(patch, "metadata"), "annotations");
    if (to[0])
        sw_json_set_string(*annotations, key, to);
    else
        sw_json_set(*annotations, key, NULL);
}

struct sw_json *hold_merge_patch(struct sw_arena *arena, const struct hold_state *from,
                                 const struct hold_state *to)
{
    if (!states_differ(from, to))
        return NULL;
    struct sw_json *patch = sw_json_object(arena);
    struct sw_json *annotations = NULL;

    patch_annotation(&annotations, patch, SW_HELD_BY, from->held_by, to->held_by);
    patch_annotation(&annotations, patch, SW_RELEASED_BY, from->released_by, to->released_by);
    patch_annotation(&annotations, patch, SW_COORDINATED_BY, from->coordinated_by,
                     to->coordinated_by);
    patch_annotation(&annotations, patch, SW_FENCE, from->fence, to->fence);
    if (from->is_paused != to->is_paused)
        sw_json_set_bool(sw_json_set_object(patch, "spec"), "paused", to->is_paused);
    return patch;
}
