/* SPDX-License-Identifier: Apache-2.0 */
/* What every object has: metadata and label selectors. */
#include "types.h"

static const struct sw_sim_field managed_fields_entry[] = {
    {"apiVersion", ONE, TEXT},
    {"fieldsType", ONE, TEXT},
    {"fieldsV1", ONE, ANY, PTR},
    {"manager", ONE, TEXT},
    {"operation", ONE, TEXT},
    {"time", ONE, TIME, PTR},
    {0},
};

static const struct sw_sim_field owner_reference[] = {
    {"apiVersion", ONE, TEXT, KEEP},
    {"blockOwnerDeletion", ONE, BOOL, PTR},
    {"controller", ONE, BOOL, PTR},
    {"kind", ONE, TEXT, KEEP},
    {"name", ONE, TEXT, KEEP},
    {"uid", ONE, TEXT, KEEP},
    {0},
};

const struct sw_sim_field sw_sim_fields_object_meta[] = {
    {"annotations", MAP, TEXT},
    {"clusterName", ONE, TEXT},
    {"creationTimestamp", ONE, TIME, KEEP},
    {"deletionGracePeriodSeconds", ONE, INT, PTR},
    {"deletionTimestamp", ONE, TIME, PTR},
    {"finalizers", LIST, TEXT, 0, .merge = "", .keys = ""},
    {"generateName", ONE, TEXT},
    {"generation", ONE, INT},
    {"labels", MAP, TEXT},
    {"managedFields", LIST, STRUCT, 0, .fields = managed_fields_entry},
    {"name", ONE, TEXT},
    {"namespace", ONE, TEXT},
    {"ownerReferences", LIST, STRUCT, 0, .fields = owner_reference, .merge = "uid", .keys = "uid"},
    {"resourceVersion", ONE, TEXT},
    {"selfLink", ONE, TEXT},
    {"uid", ONE, TEXT},
    {0},
};

static const struct sw_sim_field label_selector_requirement[] = {
    {"key", ONE, TEXT, KEEP, .merge = "key"},
    {"operator", ONE, TEXT, KEEP},
    {"values", LIST, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_label_selector[] = {
    {"matchExpressions", LIST, STRUCT, 0, .fields = label_selector_requirement},
    {"matchLabels", MAP, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_condition[] = {
    {"lastTransitionTime", ONE, TIME, KEEP},
    {"message", ONE, TEXT, KEEP},
    {"observedGeneration", ONE, INT},
    {"reason", ONE, TEXT, KEEP},
    {"status", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, KEEP},
    {0},
};
