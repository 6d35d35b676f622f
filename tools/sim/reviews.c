/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds that are answered and not stored. Nothing is enforced here: everybody may do everything,
 * and a token is anybody who says so, but that one of a service account (token.h) ends in its time.
 */
#include <string.h>

#include "api_internal.h"
#include "base/util.h"
#include "token.h"
#include "value.h"

/* As all of them begin: {" */
static bool is_web_token(const char *token)
{
    return strncmp(token, "eyJ", 3) == 0;
}

static json_t *account_status(const char *token, int64_t now_s)
{
    SW_AUTO(char, sw_free) name = sw_sim_token_subject(token, now_s);
    if (!name) {
        return json_pack("{s:{},s:s}", "user", "error", "invalid bearer token");
    }
    return json_pack("{s:b,s:{s:s,s:[s,s]}}", "authenticated", 1, "user", "username", name,
                     "groups", "system:serviceaccounts", "system:authenticated");
}

/* Whose token it is: that of a service account, "NAME", or "NAME/GROUP,GROUP". One that begins with
 * "invalid" is nobody's. */
static json_t *token_status(const char *token, int64_t now_s)
{
    if (is_web_token(token)) {
        return account_status(token, now_s);
    }
    if (!*token || strncmp(token, "invalid", 7) == 0) {
        return json_pack("{s:{},s:s}", "user", "error", "invalid bearer token");
    }
    size_t len = strcspn(token, "/");
    json_t *groups = json_array();
    for (const char *rest = token + len; *rest == '/' || *rest == ',';) {
        size_t group_len = strcspn(rest + 1, ",");
        json_array_append_new(groups, json_stringn(rest + 1, group_len));
        rest += 1 + group_len;
    }
    json_array_append_new(groups, json_string("system:authenticated"));
    return json_pack("{s:b,s:{s:s%,s:o}}", "authenticated", 1, "user", "username", token, len,
                     "groups", groups);
}

json_t *sw_sim_review(const struct sw_sim_call *call, json_t *object)
{
    const struct sw_sim_kind *kind = call->route.kind;
    SW_AUTO(char, sw_free)
    version = sw_asprintf("%s%s%s", kind->group, *kind->group ? "/" : "", kind->version);
    json_t *spec = json_object_get(object, "spec");
    json_t *answer =
        json_pack("{s:s,s:s,s:{s:n},s:O}", "kind", kind->kind, "apiVersion", version, "metadata",
                  "creationTimestamp", "spec", json_is_object(spec) ? spec : object);
    json_t *status =
        strcmp(kind->kind, "TokenReview") == 0
            ? token_status(sw_sim_text(spec, "token", ""), sw_wall_us(call->api->loop) / 1000000)
            : json_pack("{s:b,s:s}", "allowed", 1, "reason",
                        "the simulated cluster allows everything");
    json_object_set_new(answer, "status", status);
    json_decref(object);
    return answer;
}
