/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The patches a Kubernetes API server takes, as pure functions: document and patch in, new document
 * out. On failure NULL is returned and *error has the text the real server gives the client.
 */
#ifndef TOOLS_SIM_PATCH_H
#define TOOLS_SIM_PATCH_H

#include <jansson.h>
#include <stdbool.h>

struct sw_error;
struct sw_sim_kind;

/* RFC 7386. */
json_t *sw_sim_merge_patch(const json_t *document, const json_t *patch);
/* RFC 6902: add, remove, replace, move, copy, test. A path that is not there: 422 in the real
 * server. */
json_t *sw_sim_json_patch(const json_t *document, const json_t *patch, struct sw_error *error);
/* Strategic merge patch of the built-in kinds: merge keys of the Pod template's lists (containers,
 * env, ports, volumes, volumeMounts, ...), conditions by type, ownerReferences by uid; $patch,
 * $deleteFromPrimitiveList, $setElementOrder, $retainKeys.
 * https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
 */
json_t *sw_sim_strategic_patch(const json_t *document, const json_t *patch, struct sw_error *error);

struct sw_sim_apply {
    const struct sw_sim_kind *kind;
    const char *manager;     /* fieldManager */
    const char *subresource; /* "" or "status" */
    bool is_forced;
    int64_t wall_us;
};
/* Server-side apply: document is NULL where the object does not exist. Keeps managedFields
 * (fieldsV1) of the document for every manager; what the manager owned and no longer names goes. A
 * conflict with another manager: NULL, *error has code -EEXIST and the text with every field and
 * its manager. What comes back has no defaults yet: sw_sim_decode and set_defaults follow, and
 * nobody owns what those write. https://kubernetes.io/docs/reference/using-api/server-side-apply/
 */
json_t *sw_sim_apply_patch(const json_t *document, const json_t *patch,
                           const struct sw_sim_apply *apply, struct sw_error *error);
/* After any other write: the manager owns what differs between before (NULL: created) and after,
 * and metadata.managedFields of after is brought up to date. operation: "Update". */
void sw_sim_track_fields(const json_t *before, json_t *after, const struct sw_sim_apply *apply);

#endif
