/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A write on its way: read (write.c), changed (write_change.c), or removed (write_delete.c), with
 * admission in between. It holds its call, and lives until it has answered.
 */
#ifndef TOOLS_SIM_WRITE_INTERNAL_H
#define TOOLS_SIM_WRITE_INTERNAL_H

#include "api_internal.h"

enum sw_sim_patch_type {
    SW_SIM_NO_PATCH,
    SW_SIM_JSON_PATCH,
    SW_SIM_MERGE_PATCH,
    SW_SIM_STRATEGIC_PATCH,
    SW_SIM_APPLY_PATCH,
};

struct sw_sim_write {
    struct sw_link link; /* api->writes, while it waits for admission */
    struct sw_sim_api *api;
    struct sw_sim_call *call;
    struct sw_sim_change_of of;
    enum sw_sim_operation operation;
    enum sw_sim_patch_type patch_type;
    json_t *body; /* as it came */
    json_t *options;
    char *manager;
    bool is_dry_run;
    bool is_forced;
    const struct sw_sim_object *old; /* a reference; NULL: it is created */
    json_t *old_json;                /* its document, while webhooks are asked */
    json_t *object;                  /* what is to be stored, or the Scale */
    bool is_mutated;                 /* a webhook changed the object: it is decoded anew */
    char *name;                      /* that admission sees */
    unsigned attempts;
    struct sw_sim_admission *admission;
    struct sw_sim_admission_request asked;
    void (*next)(struct sw_sim_write *write); /* after admission, unless it refused */
    /* of a deletion */
    struct sw_sim_deletion deletion;
    bool is_collection;
    struct sw_sim_object const **targets; /* references */
    size_t target_count, target_at;
    json_t *deleted;
};

void sw_sim_write_create(struct sw_sim_write *write);
void sw_sim_write_update(struct sw_sim_write *write);
void sw_sim_write_delete(struct sw_sim_write *write);
void sw_sim_write_evict(struct sw_sim_write *write);

/* Ends it. Takes the refusal. */
void sw_sim_write_refuse(struct sw_sim_write *write, json_t *refusal);
void sw_sim_write_free(struct sw_sim_write *write);
/* Sets asked.old_object from old, for as long as webhooks may take. */
void sw_sim_write_show_old(struct sw_sim_write *write);
/* Asks the webhooks about asked, and goes on with next. */
void sw_sim_write_ask(struct sw_sim_write *write, bool is_mutating,
                      void (*next)(struct sw_sim_write *write));

/* autoscaling/v1 Scale, as a kind. */
extern const struct sw_sim_kind sw_sim_scale_kind;

#endif
