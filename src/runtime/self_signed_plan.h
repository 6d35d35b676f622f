/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates of our own for the webhook: what is to be done next, and what the Secret is to hold
 * then. Pure but for the making of keys.
 *
 * The Secret says all: the authorities that are to be trusted (ca.crt, the newest first), the key
 * of the newest (ca.key), and the pair that is served (tls.crt, tls.key). A new authority comes in
 * steps, each a write of the Secret, so that whoever leads can go on from any of them:
 *
 *   the Secret                          next
 *   no authority that can be used, or   NEW_AUTHORITY: put before the old ones; the pair that is
 *   one past two thirds of its life     served stays
 *   the pair is not by the newest, or   ISSUE, once caBundle holds the newest authority and has
 *   past two thirds of its life         done so for a while: API servers hear of it by a watch
 *   the pair is by the newest, and      DROP_OLD, once that has been so for long: replicas hear of
 *   older authorities are trusted too   the new pair by a watch
 *   one authority, a good pair          nothing, until two thirds of a life are over
 *
 * Where caBundle trusts nobody yet nobody can be let down, and all is made at once. A Secret that
 * was deleted or garbled is made anew in the same order; the authorities to be trusted meanwhile
 * are those known before, or those in caBundle.
 */
#ifndef SW_RUNTIME_SELF_SIGNED_PLAN_H
#define SW_RUNTIME_SELF_SIGNED_PLAN_H

#include <stdbool.h>
#include <stdint.h>

struct sw_error;

/* PEM texts, new; NULL: absent. */
struct sw_signed_parts {
    char *certificate, *key; /* tls.crt, tls.key */
    char *authorities;       /* ca.crt */
    char *authority_key;     /* ca.key */
};

struct sw_signed_times {
    int64_t authority_us, certificate_us; /* lives */
    int64_t settle_us;                    /* until every API server knows a new caBundle */
    int64_t drop_us;                      /* until every replica serves a new pair */
};

/* Ten years, one year, 30 s, 10 min. */
extern const struct sw_signed_times sw_signed_times;

enum sw_signed_step {
    SW_SIGNED_NOTHING,
    SW_SIGNED_NEW_AUTHORITY,
    SW_SIGNED_ISSUE,
    SW_SIGNED_DROP_OLD,
};

struct sw_signed_view {
    const struct sw_signed_parts *parts;  /* of the Secret; all absent where there is none */
    const struct sw_signed_parts *before; /* the last good ones that this process saw */
    const char *stored;                   /* the authorities in caBundle; "" where there are none */
    bool is_trusted;                      /* each caBundle of ours holds the newest of parts */
    const char *const *names;             /* of the service; NULL-terminated */
    const struct sw_signed_times *times;
    int64_t now_us;
    int64_t unchanged_us; /* how long Secret and caBundle have been as they are */
};

/* *ret_again_us: after which time to look again, where nothing changes. */
enum sw_signed_step sw_signed_plan(const struct sw_signed_view *view, int64_t *ret_again_us);
/* What the Secret is to hold after the step. */
int sw_signed_make(const struct sw_signed_view *view, enum sw_signed_step step,
                   struct sw_signed_parts *ret_parts, struct sw_error *error);

/* The newest authority and its key can be used at that time. */
bool sw_signed_has_authority(const struct sw_signed_parts *parts, int64_t now_us);
/* The pair can be served at that time, to those who trust the authorities. */
bool sw_signed_has_pair(const struct sw_signed_parts *parts, int64_t now_us);
bool sw_signed_is_trusted(const char *stored, const struct sw_signed_parts *parts);
void sw_signed_parts_copy(struct sw_signed_parts *to, const struct sw_signed_parts *from);
/* Wipes the keys; all are absent afterwards. */
void sw_signed_parts_done(struct sw_signed_parts *parts);

#endif
