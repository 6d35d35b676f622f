/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET and PATCH.
 */
#include "edit.h"

#include <ctype.h>
#include <string.h>

#include <slipway/json.h>
#include <slipway/kind.h>

#include "base/util.h"
#include "session.h"

enum { TRIES_MAX = 8 };

static enum ks_exit complain(const struct ks_session *session, const struct sw_kind *kind,
                             const char *name, const char *verb, const struct ks_answer *answer)
{
    if (answer->status == 404) {
        ks_complain("there is no %s %s in namespace %s", kind->kind, name, ks_namespace(session));
        return KS_NOT_FOUND;
    }
    ks_complain("cannot %s %s %s: %s", verb, kind->kind, name, answer->message);
    return KS_FAILED;
}

static struct sw_json *patch_of(struct ks_session *session, const struct sw_json *object)
{
    struct sw_json *patch = sw_json_object(session->arena);
    const char *version = sw_json_get_string(sw_json_get(object, "metadata"), "resourceVersion");

    sw_json_set_string(sw_json_set_object(patch, "metadata"), "resourceVersion",
                       version ? version : "");
    return patch;
}

enum ks_exit ks_edit(struct ks_session *session, const struct sw_kind *kind, const char *name,
                     ks_edit_fn fn, void *arg, const struct sw_json **ret_object,
                     bool *ret_is_changed)
{
    const char *path = ks_path(session, kind, ks_namespace(session), name);
    struct ks_answer answer;

    if (!path)
        return KS_USAGE;
    for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
        const struct sw_json *object = ks_get(session, path, &answer);
        struct sw_json *now;
        if (!object)
            return complain(session, kind, name, "read", &answer);
        struct sw_json *patch = patch_of(session, object);
        *ret_object = object;
        *ret_is_changed = fn(arg, object, patch);
        if (!*ret_is_changed)
            return KS_DONE;
        const char *target = sw_arena_printf(session->arena, "%s%s", path, ks_write_query(session));
        if (ks_ask(session, "PATCH", target, "application/merge-patch+json", patch, 0, &answer)) {
            if (sw_json_parse(session->arena, answer.body, answer.body_len, &now, NULL) == 0)
                *ret_object = now;
            return KS_DONE;
        }
        if (answer.status != 409)
            return complain(session, kind, name, "change", &answer);
    }
    ks_complain("cannot change %s %s: others keep changing it", kind->kind, name);
    return KS_FAILED;
}

void ks_tell(struct ks_session *session, const struct sw_kind *kind, const char *name,
             const char *what)
{
    const char *dry_run = session->options->values[KS_DRY_RUN];
    const char *space = strchr(what, ':');
    size_t verb_len = space ? (size_t)(space - what) : strlen(what);
    char *lower = sw_arena_strdup(session->arena, kind->kind);

    for (char *p = lower; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    sw_buf_printf(&session->out, "%s.%s/%s %.*s%s%s\n", lower, kind->group, name, (int)verb_len,
                  what, dry_run && strcmp(dry_run, "server") == 0 ? " (server dry run)" : "",
                  what + verb_len);
}
