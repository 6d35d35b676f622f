/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of owners, and the changes of a hold that policies ask for. The admission table is in
 * review.c.
 */
#include "hold.h"

#include <stdlib.h>
#include <string.h>

#include <slipway/json.h>

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
        .fence = annotation(object, SW_FENCE),
        .saved = annotation(object, SW_SAVED),
    };
    for (size_t i = 0; i < HOLD_POLICIES; i++)
        ret_state->marks[i] = annotation(object, hold_policies[i].annotation);
}

bool hold_is_users_pause(const struct hold_state *state)
{
    return state->is_paused && !state->held_by[0];
}

/* ---- marks and owners ---- */

/* Is the owner "policy/name"? */
static bool is_owner(struct token owner, const char *policy, struct token name)
{
    size_t len = strlen(policy);

    return owner.len == len + 1 + name.len && memcmp(owner.at, policy, len) == 0 &&
           owner.at[len] == '/' && memcmp(owner.at + len + 1, name.at, name.len) == 0;
}

static bool are_named(const char *owners, const char *policy, const char *names)
{
    struct token name, owner;

    while (next_token(&names, &name)) {
        const char *list = owners;
        bool is_named = false;
        while (!is_named && next_token(&list, &owner))
            is_named = is_owner(owner, policy, name);
        if (!is_named)
            return false;
    }
    return true;
}

bool hold_is_released(const struct hold_state *state)
{
    bool is_released = state->released_by[0] != '\0';

    for (size_t i = 0; i < HOLD_POLICIES; i++)
        is_released =
            is_released && are_named(state->released_by, hold_policies[i].name, state->marks[i]);
    return is_released;
}

const char *hold_owners_of_marks(struct sw_arena *arena, const struct hold_state *state,
                                 const char *known)
{
    const char *owners = "";

    for (size_t i = 0; i < HOLD_POLICIES; i++) {
        const char *names = state->marks[i];
        struct token name;
        if (hold_list_has_policy(known, hold_policies[i].name))
            continue;
        while (next_token(&names, &name))
            owners = hold_list_union(
                arena, owners,
                sw_arena_printf(arena, "%s/%.*s", hold_policies[i].name, (int)name.len, name.at));
    }
    return owners;
}

const char *hold_names_of(struct sw_arena *arena, const char *owners, const char *policy)
{
    char *text = sw_arena_alloc(arena, strlen(owners) + 1);
    size_t skip = strlen(policy) + 1, len = 0;
    struct token owner;

    while (next_token(&owners, &owner)) {
        if (!token_is_of_policy(owner, policy) || owner.len <= skip)
            continue;
        if (len > 0)
            text[len++] = ',';
        memcpy(text + len, owner.at + skip, owner.len - skip);
        len += owner.len - skip;
    }
    return text;
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
    bool differ = a->is_paused != b->is_paused || strcmp(a->held_by, b->held_by) != 0 ||
                  strcmp(a->released_by, b->released_by) != 0 || strcmp(a->fence, b->fence) != 0;

    for (size_t i = 0; i < HOLD_POLICIES; i++)
        differ = differ || strcmp(a->marks[i], b->marks[i]) != 0;
    return differ;
}

static void set_mark(struct sw_arena *arena, struct hold_state *state, const char *policy,
                     const char *owners)
{
    for (size_t i = 0; i < HOLD_POLICIES; i++)
        if (strcmp(hold_policies[i].name, policy) == 0)
            state->marks[i] = hold_names_of(arena, owners, policy);
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
        to.released_by = hold_list_union(
            arena, hold_list_union(arena, released_by_rest, request->owners), others->owners);
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
        set_mark(arena, &to, policy, request->marks);
    if (request->fence)
        to.fence = request->fence;
    *ret_state = to;
    return states_differ(state, &to) ? HOLD_CHANGES : HOLD_UNCHANGED;
}

static void patch_annotation(struct sw_json *patch, const char *key, const char *from,
                             const char *to)
{
    if (strcmp(from, to) == 0)
        return;
    struct sw_json *annotations =
        sw_json_set_object(sw_json_set_object(patch, "metadata"), "annotations");
    if (to[0])
        sw_json_set_string(annotations, key, to);
    else
        sw_json_set(annotations, key, NULL);
}

/* A copy that may be changed. */
static struct sw_json *copy(struct sw_arena *arena, const struct sw_json *value)
{
    struct sw_json *to = NULL;
    size_t len;
    const char *text = sw_json_dump(value, arena, &len);

    return sw_json_parse(arena, text, len, &to, NULL) == 0 ? to : sw_json_object(arena);
}

struct sw_json *hold_merge_patch(struct sw_arena *arena, const struct hold_state *from,
                                 const struct hold_state *to, const struct sw_json *also)
{
    if (!states_differ(from, to) && !also)
        return NULL;
    struct sw_json *patch = also ? copy(arena, also) : sw_json_object(arena);

    patch_annotation(patch, SW_HELD_BY, from->held_by, to->held_by);
    patch_annotation(patch, SW_RELEASED_BY, from->released_by, to->released_by);
    for (size_t i = 0; i < HOLD_POLICIES; i++)
        patch_annotation(patch, hold_policies[i].annotation, from->marks[i], to->marks[i]);
    patch_annotation(patch, SW_FENCE, from->fence, to->fence);
    if (from->is_paused != to->is_paused)
        sw_json_set_bool(sw_json_set_object(patch, "spec"), "paused", to->is_paused);
    return patch;
}
