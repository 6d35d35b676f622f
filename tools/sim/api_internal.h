/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the simulated API server. A call (call.c) is read into a route (route.c) and a
 * query (query.c), and answered by one of list.c, watch.c, discovery.c, or as a write: rules.c
 * holds what must be true of an object, commit.c what happens to the store, write.c the way through
 * admission. A refusal is a Status document (status.c); NULL means that nothing speaks against it.
 */
#ifndef TOOLS_SIM_API_INTERNAL_H
#define TOOLS_SIM_API_INTERNAL_H

#include <jansson.h>

#include <slipway/attr.h>

#include "api.h"
#include "base/list.h"
#include "base/loop.h"
#include "cache.h"
#include "kind.h"
#include "store.h"

struct sw_selector;
struct sw_map;
struct sw_sim_cache;
struct sw_sim_collector;
struct sw_sim_definitions;
struct sw_sim_expiry;
struct sw_sim_hooks;
struct sw_sim_watch;

/* ---- the server ---- */

struct sw_sim_served {
    const struct sw_sim_kind *kind;
    const struct sw_sim_kind *stored; /* the version in which its objects are stored */
};

struct sw_sim_api {
    struct sw_loop *loop;
    struct sw_sim_store *store;
    struct sw_sim_api_options options;
    const struct sw_log *log;
    struct sw_sim_store_watcher watcher;
    struct sw_link calls;  /* struct sw_sim_call.link */
    struct sw_link writes; /* of calls that wait for admission, with or without their client */
    struct sw_sim_served *served;
    size_t served_count;
    struct sw_sim_collector *collector;
    struct sw_link watches; /* struct sw_sim_watch.link */
    struct sw_sim_definitions *definitions;
    struct sw_sim_expiry *expiry;
    struct sw_sim_hooks *hooks; /* NULL: to be read anew */
    struct sw_defer trim;       /* the store has more documents than it is to have */
    bool is_closing;
};

const struct sw_sim_served *sw_sim_served(const struct sw_sim_api *api, const char *group,
                                          const char *version, const char *plural);
/* The same by kind instead of plural. */
const struct sw_sim_served *sw_sim_served_kind(const struct sw_sim_api *api, const char *group,
                                               const char *version, const char *kind);
/* The one of which objects are stored. */
const struct sw_sim_kind *sw_sim_stored(const struct sw_sim_api *api,
                                        const struct sw_sim_kind *kind);
bool sw_sim_same_resource(const struct sw_sim_kind *a, const struct sw_sim_kind *b);

/* definitions.c: CustomResourceDefinitions */
struct sw_sim_definitions *sw_sim_definitions_new(struct sw_sim_api *api);
struct sw_sim_definitions *sw_sim_definitions_free(struct sw_sim_definitions *definitions);
void sw_sim_definitions_change(struct sw_sim_definitions *definitions,
                               const struct sw_sim_change *change);

/* expiry.c: Events that have been there long enough */
struct sw_sim_expiry *sw_sim_expiry_new(struct sw_sim_api *api);
struct sw_sim_expiry *sw_sim_expiry_free(struct sw_sim_expiry *expiry);
void sw_sim_expiry_change(struct sw_sim_expiry *expiry, const struct sw_sim_change *change);

/* ---- requests ---- */

enum sw_sim_target {
    SW_SIM_NOTHING,
    SW_SIM_RESOURCE,
    SW_SIM_VERSION,       /* /version */
    SW_SIM_HEALTH,        /* /healthz, /livez, /readyz */
    SW_SIM_OPENAPI,       /* /openapi/v2 */
    SW_SIM_PATHS,         /* / */
    SW_SIM_CORE_VERSIONS, /* /api */
    SW_SIM_GROUPS,        /* /apis */
    SW_SIM_GROUP,         /* /apis/GROUP */
    SW_SIM_RESOURCES,     /* /api/v1, /apis/GROUP/VERSION */
};

struct sw_sim_route {
    enum sw_sim_target target;
    char *group, *version;            /* "" where there is none */
    const struct sw_sim_kind *kind;   /* as asked for */
    const struct sw_sim_kind *stored; /* NULL unless target is SW_SIM_RESOURCE */
    char *namespace_;                 /* "": of all, or the kind has none */
    char *name;                       /* "": the collection */
    char *subresource;                /* "" */
    bool is_watch_path;               /* /api/v1/watch/... */
};

/* path is decoded segment by segment. Always 0 with a target; SW_SIM_NOTHING where nothing is. */
void sw_sim_route_read(const struct sw_sim_api *api, const char *path, size_t len,
                       struct sw_sim_route *ret_route);
void sw_sim_route_done(struct sw_sim_route *route);

struct sw_sim_query {
    struct sw_map *values; /* name -> char * */
};

void sw_sim_query_read(struct sw_sim_query *query, const char *text);
void sw_sim_query_done(struct sw_sim_query *query);
const char *sw_sim_query_get(const struct sw_sim_query *query, const char *name); /* or NULL */
bool sw_sim_query_is_true(const struct sw_sim_query *query, const char *name);
/* Of a number; absent where there is none. -EINVAL. */
int sw_sim_query_number(const struct sw_sim_query *query, const char *name, int64_t absent,
                        int64_t *ret_number);

/* Label and field selectors of a list or watch. */
struct sw_sim_filter {
    struct sw_selector *labels; /* NULL: everything */
    json_t *fields;             /* [[path, operator, value]], NULL: everything */
};

json_t *sw_sim_filter_read(struct sw_sim_filter *filter, const struct sw_sim_query *query,
                           const struct sw_sim_kind *kind);
void sw_sim_filter_done(struct sw_sim_filter *filter);
bool sw_sim_filter_is_empty(const struct sw_sim_filter *filter);
bool sw_sim_filter_matches(const struct sw_sim_filter *filter, const struct sw_sim_object *object);
/* A selector against {"key": "value"}. */
bool sw_sim_labels_match(const struct sw_selector *selector, const json_t *labels);

/* How objects are wanted (the Accept header). */
enum sw_sim_form { SW_SIM_AS_IS, SW_SIM_AS_TABLE, SW_SIM_AS_METADATA };

struct sw_sim_user {
    char *name;
    json_t *groups; /* array of strings */
};

struct sw_sim_call {
    struct sw_sim_api *api;
    struct sw_link link;
    struct sw_defer run;
    struct sw_sim_answer_events events;
    void *arg;
    char *method, *target, *accept, *content_type, *user_agent, *body;
    size_t body_len;
    struct sw_sim_user user;
    struct sw_sim_route route;
    struct sw_sim_query query;
    enum sw_sim_form form;
    bool is_pretty;
    bool is_cancelled;
    unsigned holds; /* who works for it; at 0 a finished call is freed */
    bool is_ended;
    struct sw_sim_watch *watch;
    const struct sw_sim_cache *cache; /* NULL: what is stored is what is known */
    struct sw_timer wait;             /* until the cache is new enough */
    uint64_t wait_until_ms;
    const char *warnings[8];
    char *warning_texts[8];
    size_t warning_count;
};

void sw_sim_call_hold(struct sw_sim_call *call);
void sw_sim_call_release(struct sw_sim_call *call);
void sw_sim_call_warn(struct sw_sim_call *call, const char *text);
/* The parts of an answer; each does nothing where the client has gone away. */
void sw_sim_answer_head(struct sw_sim_call *call, int status, const char *content_type,
                        unsigned retry_after_s);
void sw_sim_answer_body(struct sw_sim_call *call, const char *bytes, size_t len);
void sw_sim_answer_end(struct sw_sim_call *call, bool is_whole);
/* A whole one. */
void sw_sim_answer_text(struct sw_sim_call *call, int status, const char *content_type,
                        const char *text, size_t len);
void sw_sim_answer_json(struct sw_sim_call *call, int status, const json_t *json);
/* Takes the Status. */
void sw_sim_answer_refusal(struct sw_sim_call *call, json_t *refusal);
/* In the form and version that the client wants. */
void sw_sim_answer_object(struct sw_sim_call *call, int status, const struct sw_sim_object *object);
/* The same of a document that is not stored (dry run, review, scale); borrowed. */
void sw_sim_answer_document(struct sw_sim_call *call, int status, const json_t *document);

/* Text of an object in the version of kind; *scratch (may be allocated anew) holds it where it is
 * not the object's own. */
const char *sw_sim_version_text(const struct sw_sim_object *object, const struct sw_sim_kind *kind,
                                char **scratch, size_t *ret_len);
/* The document in that version; a new reference. */
json_t *sw_sim_version_json(const json_t *document, const struct sw_sim_kind *kind);

/* autoscaling/v1 Scale of an object; new. */
json_t *sw_sim_scale(const struct sw_sim_kind *kind, const json_t *object);
void sw_sim_discover(struct sw_sim_call *call);
void sw_sim_list(struct sw_sim_call *call);
void sw_sim_get(struct sw_sim_call *call);
void sw_sim_watch_open(struct sw_sim_call *call);
void sw_sim_watch_close(struct sw_sim_watch *watch);
/* Of a kind that is served no more: they end after what has been told. */
void sw_sim_watches_finish(struct sw_sim_api *api, const struct sw_sim_kind *kind);
/* Whoever watches with that cache hears of it; NULL: who watches without one. */
void sw_sim_watch_change(struct sw_sim_api *api, const struct sw_sim_cache *cache,
                         const struct sw_sim_change *change);
void sw_sim_write_begin(struct sw_sim_call *call);
/* New; NULL where it is neither JSON nor, where the content type says so, YAML: *ret_why (new). */
json_t *sw_sim_read_body(const struct sw_sim_call *call, char **ret_why);
void sw_sim_writes_drop(struct sw_sim_api *api);
/* Answers a create of a kind that is not stored. Takes the object. */
json_t *sw_sim_review(const struct sw_sim_call *call, json_t *object);

/* ---- tables (table.c) ---- */

json_t *sw_sim_table_columns(const struct sw_sim_kind *kind);
/* include: "Metadata", "Object", "None". */
json_t *sw_sim_table_row(const struct sw_sim_kind *kind, const json_t *object, const char *include,
                         int64_t wall_us);
json_t *sw_sim_partial(const json_t *object);

/* ---- errors (status.c); each is new ---- */

json_t *sw_sim_status(int code, const char *reason, const char *message);
/* The same with empty details. */
json_t *sw_sim_plain_status(int code, const char *reason, const char *message);
SW_PRINTF(3, 4) json_t *sw_sim_statusf(int code, const char *reason, const char *format, ...);
json_t *sw_sim_not_found(const struct sw_sim_kind *kind, const char *name);
json_t *sw_sim_already_exists(const struct sw_sim_kind *kind, const char *name);
json_t *sw_sim_conflict(const struct sw_sim_kind *kind, const char *name, const char *why);
json_t *sw_sim_modified(const struct sw_sim_kind *kind, const char *name);
json_t *sw_sim_forbidden(const struct sw_sim_kind *kind, const char *name, const char *why);
/* causes: [{"field", "reason", "message"}], borrowed. */
json_t *sw_sim_invalid(const struct sw_sim_kind *kind, const char *name, const json_t *causes);
json_t *sw_sim_internal_error(const char *why);
/* Of server-side apply, from its text. */
json_t *sw_sim_apply_conflict(const char *text);
json_t *sw_sim_expired(const char *message);
json_t *sw_sim_too_large_version(uint64_t asked, uint64_t current);
int sw_sim_status_code(const json_t *status);
/* "deployments.apps" */
char *sw_sim_qualified(const char *plural_or_kind, const char *group);

/* ---- writes ---- */

enum sw_sim_operation { SW_SIM_CREATE, SW_SIM_UPDATE, SW_SIM_DELETE };

/* What is to be written, whoever wants it. Borrowed by the rules. */
struct sw_sim_change_of {
    const struct sw_sim_kind *kind; /* as asked for */
    const struct sw_sim_kind *stored;
    const char *namespace_;
    const char *name;        /* "" of a create without a name in its path */
    const char *subresource; /* "" or "status" */
    const char *manager;     /* NULL: unknown */
    bool is_applied;         /* server-side apply has kept the managed fields already */
};

/* A random uid; room for 40. */
void sw_sim_make_uid(struct sw_sim_api *api, char *text);

/* rules.c. Each may replace *object; a refusal leaves it as it was. */
/* What the real server does when it decodes: version, kind, namespace, schema, defaults. */
json_t *sw_sim_rules_decode(const struct sw_sim_change_of *of, json_t **object);
/* Whether anything may be created in the namespace. */
json_t *sw_sim_rules_namespace(struct sw_sim_api *api, const struct sw_sim_change_of *of,
                               const char *name);
json_t *sw_sim_rules_create(struct sw_sim_api *api, const struct sw_sim_change_of *of,
                            json_t **object);
/* The resource version of *object, where it has one, is a precondition. */
json_t *sw_sim_rules_update(struct sw_sim_api *api, const struct sw_sim_change_of *of,
                            const struct sw_sim_object *old, json_t **object);
bool sw_sim_may_create_on_update(const struct sw_sim_kind *kind);

/* check.c: appends causes. */
void sw_sim_check_metadata(const struct sw_sim_kind *kind, const json_t *object, json_t *causes);
void sw_sim_check_metadata_update(const json_t *old, const json_t *object, json_t *causes);

/* commit.c */
/* Takes the object. NULL where one of that name is there. */
const struct sw_sim_object *sw_sim_commit_create(struct sw_sim_api *api,
                                                 const struct sw_sim_kind *stored, json_t *object);
/* Takes the object; old is the stored one. Writes nothing where nothing differs (and returns old);
 * removes it where it was being deleted and nothing holds it any more: *ret_is_gone. A reference.
 */
const struct sw_sim_object *sw_sim_commit_update(struct sw_sim_api *api,
                                                 const struct sw_sim_object *old, json_t *object,
                                                 bool *ret_is_gone);

struct sw_sim_deletion {
    int64_t grace_s;           /* -1: the object's own */
    const char *propagation;   /* "", "Background", "Foreground", "Orphan" */
    bool orphans;              /* the old orphanDependents: true */
    const char *uid, *version; /* preconditions, or NULL */
    bool is_dry_run;
};

json_t *sw_sim_delete_check(const struct sw_sim_object *object,
                            const struct sw_sim_deletion *deletion);
/* *ret_left: a reference to the object as it is while it is being deleted, NULL where it is gone.
 */
void sw_sim_commit_delete(struct sw_sim_api *api, const struct sw_sim_object *object,
                          const struct sw_sim_deletion *deletion,
                          const struct sw_sim_object **ret_left);

/* ---- admission (admission.c) ---- */

struct sw_sim_admission;

struct sw_sim_admission_request {
    enum sw_sim_operation operation;
    const struct sw_sim_kind *kind, *stored;
    const char *namespace_, *name, *subresource;
    const json_t *object, *old_object; /* NULL where there is none */
    const json_t *options;             /* CreateOptions and their kin */
    const struct sw_sim_user *user;
    bool is_dry_run;
};

/* refusal is taken by the callee; object: new, changed or not, NULL where there was none. */
typedef void (*sw_sim_admission_end_fn)(void *arg, json_t *refusal, json_t *object);

/* False where no webhook wants to be asked, or *ret_refusal says that none can be: then done is not
 * called. Otherwise it is called once, later. What request points to must stay until then. */
bool sw_sim_admit(struct sw_sim_api *api, const struct sw_sim_admission_request *request,
                  bool is_mutating, struct sw_sim_call *call, sw_sim_admission_end_fn done,
                  void *arg, json_t **ret_refusal, struct sw_sim_admission **ret_admission);
/* Webhook configurations may have changed. */
void sw_sim_admission_change(struct sw_sim_api *api, const struct sw_sim_change *change);
/* Nothing is called any more. */
void sw_sim_admission_drop(struct sw_sim_admission *admission);

/* ---- garbage (collect.c) ---- */

struct sw_sim_collector *sw_sim_collector_new(struct sw_sim_api *api);
struct sw_sim_collector *sw_sim_collector_free(struct sw_sim_collector *collector);
void sw_sim_collector_change(struct sw_sim_collector *collector,
                             const struct sw_sim_change *change);

#endif
