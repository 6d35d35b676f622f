/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the tables of workloads and of the smaller kinds of other groups. */
#include <inttypes.h>

#include "base/util.h"
#include "document.h"
#include "rows.h"

static json_t *containers(const json_t *object)
{
    return sw_sim_at(object, "spec.template.spec.containers");
}

static json_t *ready_of(const json_t *object)
{
    return json_sprintf("%" PRId64 "/%" PRId64, sw_sim_int_at(object, "status.readyReplicas", 0),
                        sw_sim_int_at(object, "spec.replicas", 0));
}

static json_t *count_at(const json_t *object, const char *path)
{
    return json_integer(sw_sim_int_at(object, path, 0));
}

json_t *sw_sim_row_deployment(const json_t *object, int64_t wall_us)
{
    return json_pack("[o, o, o, o, o, o, o]", ready_of(object),
                     count_at(object, "status.updatedReplicas"),
                     count_at(object, "status.availableReplicas"), sw_sim_cell_age(object, wall_us),
                     sw_sim_cell_names(containers(object), "name"),
                     sw_sim_cell_names(containers(object), "image"),
                     sw_sim_cell_selector(sw_sim_at(object, "spec.selector")));
}

json_t *sw_sim_row_replicaset(const json_t *object, int64_t wall_us)
{
    return json_pack("[o, o, o, o, o, o, o]", count_at(object, "spec.replicas"),
                     count_at(object, "status.replicas"), count_at(object, "status.readyReplicas"),
                     sw_sim_cell_age(object, wall_us),
                     sw_sim_cell_names(containers(object), "name"),
                     sw_sim_cell_names(containers(object), "image"),
                     sw_sim_cell_selector(sw_sim_at(object, "spec.selector")));
}

json_t *sw_sim_row_statefulset(const json_t *object, int64_t wall_us)
{
    return json_pack("[o, o, o, o]", ready_of(object), sw_sim_cell_age(object, wall_us),
                     sw_sim_cell_names(containers(object), "name"),
                     sw_sim_cell_names(containers(object), "image"));
}

json_t *sw_sim_row_daemonset(const json_t *object, int64_t wall_us)
{
    return json_pack(
        "[o, o, o, o, o, o, o, o, o, o]", count_at(object, "status.desiredNumberScheduled"),
        count_at(object, "status.currentNumberScheduled"), count_at(object, "status.numberReady"),
        count_at(object, "status.updatedNumberScheduled"),
        count_at(object, "status.numberAvailable"),
        sw_sim_cell_labels(sw_sim_at(object, "spec.template.spec.nodeSelector")),
        sw_sim_cell_age(object, wall_us), sw_sim_cell_names(containers(object), "name"),
        sw_sim_cell_names(containers(object), "image"),
        sw_sim_cell_selector(sw_sim_at(object, "spec.selector")));
}

static json_t *controller_of(const json_t *object)
{
    const json_t *owners = sw_sim_at(object, "metadata.ownerReferences");
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const json_t *owner = json_array_get(owners, i);
        if (sw_sim_bool_at(owner, "controller")) {
            return json_sprintf("%s/%s", sw_sim_text_at(owner, "kind"),
                                sw_sim_text_at(owner, "name"));
        }
    }
    return json_string("<none>");
}

json_t *sw_sim_row_revision(const json_t *object, int64_t wall_us)
{
    return json_pack("[o, o, o]", controller_of(object), count_at(object, "revision"),
                     sw_sim_cell_age(object, wall_us));
}

json_t *sw_sim_row_lease(const json_t *object, int64_t wall_us)
{
    return json_pack("[o, o]", sw_sim_cell_text(object, "spec.holderIdentity", ""),
                     sw_sim_cell_age(object, wall_us));
}

json_t *sw_sim_row_budget(const json_t *object, int64_t wall_us)
{
    return json_pack("[o, o, o, o]", sw_sim_cell_text(object, "spec.minAvailable", "N/A"),
                     sw_sim_cell_text(object, "spec.maxUnavailable", "N/A"),
                     count_at(object, "status.disruptionsAllowed"),
                     sw_sim_cell_age(object, wall_us));
}

json_t *sw_sim_row_webhooks(const json_t *object, int64_t wall_us)
{
    size_t count = json_array_size(sw_sim_at(object, "webhooks"));
    return json_pack("[o, o]", json_integer((json_int_t)count), sw_sim_cell_age(object, wall_us));
}
