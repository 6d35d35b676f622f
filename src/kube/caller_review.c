/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question about a token is put together in a buffer that its owner can wipe; the others hold
 * no secret and are built as JSON.
 */
#include "kube/caller_review.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool sw_is_bearer_token(const char *text)
{
    const char *at = text;

    while (is_letter_or_digit(*at) || (*at && strchr("-._~+/", *at)))
        at++;
    return at > text && at[strspn(at, "=")] == '\0';
}

int sw_token_review_put(struct sw_buf *out, const char *token)
{
    return sw_buf_printf(out,
                         "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                         "\"spec\":{\"token\":\"%s\"}}",
                         token);
}

/* The status of an answer of that kind; NULL: it is none. */
static const struct sw_json *status_of(struct sw_arena *arena, const char *text, size_t len,
                                       const char *kind)
{
    struct sw_json *answer;

    if (sw_json_parse(arena, text, len, &answer, NULL))
        return NULL;
    const char *found = sw_json_get_string(answer, "kind");
    const struct sw_json *status = sw_json_get(answer, "status");
    bool is_one = found && strcmp(found, kind) == 0 && sw_json_type(status) == SW_JSON_OBJECT;
    return is_one ? status : NULL;
}

int sw_token_review_read(struct sw_arena *arena, const char *text, size_t len,
                         const struct sw_json **ret_user)
{
    const struct sw_json *status = status_of(arena, text, len, "TokenReview");
    const struct sw_json *user = sw_json_get(status, "user");
    const char *name = sw_json_get_string(user, "username");

    if (!status)
        return -EINVAL;
    bool is_known = sw_json_get_bool(status, "authenticated", false) && name && name[0];
    *ret_user = is_known ? user : NULL;
    return 0;
}

const char *sw_access_review_text(struct sw_arena *arena, const struct sw_json *user,
                                  const char *path, const char *verb, size_t *ret_len)
{
    struct sw_json *body = sw_json_object(arena);
    struct sw_json *spec = sw_json_set_object(body, "spec");
    struct sw_json *what = sw_json_set_object(spec, "nonResourceAttributes");
    const struct sw_json *groups = sw_json_get(user, "groups"), *extra = sw_json_get(user, "extra");
    const char *uid = sw_json_get_string(user, "uid");

    sw_json_set_string(body, "apiVersion", "authorization.k8s.io/v1");
    sw_json_set_string(body, "kind", "SubjectAccessReview");
    sw_json_set_string(what, "path", path);
    sw_json_set_string(what, "verb", verb);
    sw_json_set_string(spec, "user", sw_json_get_string(user, "username"));
    if (uid)
        sw_json_set_string(spec, "uid", uid);
    struct sw_json *list = sw_json_set_array(spec, "groups");
    for (size_t i = 0; i < sw_json_size(groups); i++)
        sw_json_append_string(list, sw_json_text(sw_json_element(groups, i)));
    if (sw_json_type(extra) == SW_JSON_OBJECT)
        sw_json_set(spec, "extra", sw_json_copy(arena, extra));
    return sw_json_dump(body, arena, ret_len);
}

int sw_access_review_read(struct sw_arena *arena, const char *text, size_t len,
                          bool *ret_is_allowed)
{
    const struct sw_json *status = status_of(arena, text, len, "SubjectAccessReview");

    if (!status)
        return -EINVAL;
    *ret_is_allowed =
        sw_json_get_bool(status, "allowed", false) && !sw_json_get_bool(status, "denied", false);
    return 0;
}
