/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend and resume: a field of the spec, which may be somebody else's to write.
 */
#include <string.h>

#include <slipway/json.h>

#include "base/util.h"
#include "edit.h"
#include "run.h"
#include "session.h"
#include "world.h"

static bool set_suspend(void *arg, const struct sw_json *object, struct sw_json *patch)
{
    const bool *is_suspended = arg;

    if (sw_json_get_bool(sw_json_get(object, "spec"), "suspend", false) == *is_suspended)
        return false;
    sw_json_set_bool(sw_json_set_object(patch, "spec"), "suspend", *is_suspended);
    return true;
}

/* Who applies the object, by what such tools write on what they apply; NULL: nobody to be seen. */
static const char *owner_of(struct ks_session *session, const struct sw_json *object)
{
    const struct sw_json *labels = sw_json_at(object, "metadata", "labels", NULL);
    const struct sw_json *annotations = sw_json_at(object, "metadata", "annotations", NULL);
    const char *kustomization = sw_json_get_string(labels, "kustomize.toolkit.fluxcd.io/name");
    const char *flux_release = sw_json_get_string(labels, "helm.toolkit.fluxcd.io/name");
    const char *argo = sw_json_get_string(annotations, "argocd.argoproj.io/tracking-id");
    const char *release = sw_json_get_string(annotations, "meta.helm.sh/release-name");

    if (!argo)
        argo = sw_json_get_string(labels, "argocd.argoproj.io/instance");
    if (kustomization)
        return sw_arena_printf(session->arena, "Flux Kustomization %s", kustomization);
    if (flux_release)
        return sw_arena_printf(session->arena, "Flux HelmRelease %s", flux_release);
    if (argo)
        return sw_arena_printf(session->arena, "the Argo CD application %.*s",
                               (int)strcspn(argo, ":"), argo);
    if (release)
        return sw_arena_printf(session->arena, "the Helm release %s, at its next upgrade,",
                               release);
    return NULL;
}

static void warn_of_owner(struct ks_session *session, const struct sw_json *object, bool value)
{
    const char *owner = owner_of(session, object);

    if (owner)
        sw_buf_printf(&session->out,
                      "  %s applies this object and will put spec.suspend back: set it to %s in "
                      "the manifest too\n",
                      owner, value ? "true" : "false");
    else
        sw_buf_printf(&session->out,
                      "  if GitOps or Helm applies this object, it will put spec.suspend back: "
                      "then set it to %s in the manifest too\n",
                      value ? "true" : "false");
}

enum ks_exit ks_run_coordination(struct ks_session *session)
{
    const struct ks_options *options = session->options;
    bool is_suspended = ks_command_id(options->command) == KS_SUSPEND;
    enum ks_exit worst = KS_DONE;

    for (size_t i = 0; i < options->name_count; i++) {
        const struct sw_json *object;
        bool is_changed;
        enum ks_exit status = ks_edit(session, &coord_kind, options->names[i], set_suspend,
                                      &is_suspended, &object, &is_changed);
        if (status != KS_DONE) {
            worst = status;
            continue;
        }
        ks_tell(session, &coord_kind, options->names[i],
                !is_changed    ? (is_suspended ? "unchanged: it is suspended already"
                                               : "unchanged: it is not suspended")
                : is_suspended ? "suspended: who rolls finishes, nobody new starts"
                               : "resumed");
        if (is_changed)
            warn_of_owner(session, object, is_suspended);
    }
    return worst;
}
