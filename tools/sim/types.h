/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of the built-in kinds, as tables (types_*.c): how each is written, when it is left
 * out, how strategic merge patch and apply treat its lists. Where each table stands in the API:
 * https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.20/
 */
#ifndef TOOLS_SIM_TYPES_H
#define TOOLS_SIM_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Short words, since the tables are made of them: seen by types_*.c, decode.c and those who walk
 * along tables. */
enum sw_sim_many { ONE, LIST, MAP /* of text to what shape says */ };

enum sw_sim_shape {
    ANY, /* taken as it comes */
    TEXT,
    INT,
    BOOL,
    NUMBER,
    INT_OR_TEXT,
    QUANTITY, /* "100m", "1Gi" */
    TIME,     /* RFC 3339 */
    MICRO_TIME,
    BYTES, /* base64 */
    STRUCT,
};

enum {
    PTR = 1,    /* zero is a value of its own: only an absent field is left out */
    KEEP = 2,   /* never left out: what is absent is written as zero, {} or null */
    RETAIN = 4, /* strategic merge: $retainKeys means something here */
    ATOMIC = 8, /* apply: one value, however much is in it */
};

/* A table ends with a field without a name. */
struct sw_sim_field {
    const char *name;
    enum sw_sim_many many;
    enum sw_sim_shape shape;
    unsigned flags;
    const struct sw_sim_field *fields; /* of STRUCT */
    /* Strategic merge patch of a LIST: NULL replaces it, "" merges texts, else the key. */
    const char *merge;
    /* Apply, of a LIST: NULL is atomic, "" a set, else the keys with commas between. */
    const char *keys;
};

const struct sw_sim_field *sw_sim_field_find(const struct sw_sim_field *fields, const char *name,
                                             size_t len);

extern const struct sw_sim_field sw_sim_fields_object_meta[];
extern const struct sw_sim_field sw_sim_fields_label_selector[];
extern const struct sw_sim_field sw_sim_fields_condition[];
extern const struct sw_sim_field sw_sim_fields_volume[];
extern const struct sw_sim_field sw_sim_fields_object_field_selector[];
extern const struct sw_sim_field sw_sim_fields_resource_field_selector[];
extern const struct sw_sim_field sw_sim_fields_resource_requirements[];
extern const struct sw_sim_field sw_sim_fields_local_object_reference[];
extern const struct sw_sim_field sw_sim_fields_pod_spec[];
extern const struct sw_sim_field sw_sim_fields_pod[];
extern const struct sw_sim_field sw_sim_fields_namespace[];
extern const struct sw_sim_field sw_sim_fields_node[];
extern const struct sw_sim_field sw_sim_fields_config_map[];
extern const struct sw_sim_field sw_sim_fields_secret[];
extern const struct sw_sim_field sw_sim_fields_object_reference[];
extern const struct sw_sim_field sw_sim_fields_service_account[];
extern const struct sw_sim_field sw_sim_fields_service[];
extern const struct sw_sim_field sw_sim_fields_endpoints[];
extern const struct sw_sim_field sw_sim_fields_event_source[];
extern const struct sw_sim_field sw_sim_fields_event[];
extern const struct sw_sim_field sw_sim_fields_pod_template_spec[];
extern const struct sw_sim_field sw_sim_fields_persistent_volume_claim[];
extern const struct sw_sim_field sw_sim_fields_deployment[];
extern const struct sw_sim_field sw_sim_fields_replica_set[];
extern const struct sw_sim_field sw_sim_fields_stateful_set[];
extern const struct sw_sim_field sw_sim_fields_daemon_set[];
extern const struct sw_sim_field sw_sim_fields_controller_revision[];
extern const struct sw_sim_field sw_sim_fields_lease[];
extern const struct sw_sim_field sw_sim_fields_new_event[];
extern const struct sw_sim_field sw_sim_fields_mutating_webhook_configuration[];
extern const struct sw_sim_field sw_sim_fields_validating_webhook_configuration[];
extern const struct sw_sim_field sw_sim_fields_role[];
extern const struct sw_sim_field sw_sim_fields_role_binding[];
extern const struct sw_sim_field sw_sim_fields_cluster_role[];
extern const struct sw_sim_field sw_sim_fields_cluster_role_binding[];
extern const struct sw_sim_field sw_sim_fields_pod_disruption_budget[];

#endif
