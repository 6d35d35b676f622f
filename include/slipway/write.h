/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing to the API server. Asynchronous; only on the leader (sinks of records excepted);
 * rate-limited at the client; 429 and Retry-After are waited for. The object in an answer is put
 * into the store before the callback comes, and the store never goes back behind it.
 */
#ifndef SLIPWAY_WRITE_H
#define SLIPWAY_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include <slipway/json.h>
#include <slipway/kind.h>
#include <slipway/module.h>

enum sw_write_verb {
    SW_GET,
    SW_CREATE,
    SW_MERGE_PATCH, /* RFC 7396; null deletes */
    SW_JSON_PATCH,  /* RFC 6902 */
    SW_APPLY,       /* server-side apply */
    SW_DELETE,
};

enum sw_subresource {
    SW_MAIN,
    SW_STATUS,
    SW_SCALE,
};

struct sw_write {
    enum sw_write_verb verb;
    const struct sw_kind *kind;
    const char *namespace_;
    const char *name; /* CREATE: may be "" with generateName in the body */
    enum sw_subresource subresource;
    const struct sw_json *body;   /* borrowed for the call */
    const char *resource_version; /* precondition: put into a merge patch, tested in a JSON patch,
                                     sent with a delete */
    const char *uid;              /* precondition of a delete */
    bool is_forced;               /* apply */
    bool also_on_followers;       /* for records of what happened, nothing else */
};

enum sw_outcome {
    SW_OK,
    SW_CONFLICT,   /* 409: the precondition failed, or it exists already; also 422 of a failed JSON
                      patch test */
    SW_NOT_FOUND,  /* 404 */
    SW_REFUSED,    /* any other 4xx: do not repeat as it is; reason and message say why */
    SW_NOT_LEADER, /* not sent: another process leads */
    SW_UNKNOWN,   /* no answer, 5xx, 429 to the end, a time-out, or a success without the object: it
                     may have happened, or may yet. Read before repeating */
    SW_HELD,      /* not sent: sw_hold_send found somebody who holds the workload */
    SW_UNCHANGED, /* not sent: sw_hold_send found that it would change nothing. `object` is what the
                     store has */
};

struct sw_answer {
    enum sw_outcome outcome;
    int status;         /* of HTTP; 0: no answer */
    const char *reason; /* of the Status: "Conflict", "Invalid"; "" */
    const char *message;
    const struct sw_object *object; /* decoded, as the store has it now; NULL without one */
    /* Of the object in the answer itself: what this very request made or found. The store may have
     * a newer one already, written by somebody else. "" without an object. */
    const char *resource_version;
};

/* Exactly once, after the call has returned 0. Not after the module is stopped, but also after it
 * has been told that it leads no more. What the answer changed in the store has been delivered to
 * all who watch, this module included, before. */
typedef void (*sw_answer_fn)(struct sw_instance *self, void *arg, const struct sw_answer *answer);

/* Negative only for what is wrong with the call itself: -EINVAL for a bad name or no namespace,
 * another code for a body beyond 3 MiB. CREATE and APPLY: apiVersion, kind and metadata.name are
 * filled in where the body lacks them. DELETE: the body, if any, is a DeleteOptions. The answer to
 * a write of SW_SCALE has no object. */
SW_API SW_MUST_USE int sw_write(struct sw_instance *self, const struct sw_write *write,
                                sw_answer_fn fn, void *arg);
/* A consistent read; what it finds, also that it is gone, goes into the store. */
SW_API SW_MUST_USE int sw_get(struct sw_instance *self, const struct sw_kind *kind,
                              const char *namespace_, const char *name, sw_answer_fn fn, void *arg);

/* In start: says that the module will send such requests, so that a permission that is missing is
 * named when the process starts, not when the request is refused. (Watching says so by itself.) */
SW_API void sw_write_declare(struct sw_instance *self, const struct sw_kind *kind,
                             enum sw_write_verb verb, enum sw_subresource subresource);

SW_API SW_NONNULL const char *sw_outcome_text(enum sw_outcome outcome);

#endif
