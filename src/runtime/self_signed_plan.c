/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of self_signed_plan.h.
 */
#include "runtime/self_signed_plan.h"

#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "base/util.h"
#include "net/tls_issue.h"

#define SECOND_US INT64_C(1000000)
#define DAY_US (INT64_C(86400) * SECOND_US)
/* Clocks differ; a certificate that is not valid yet is refused. */
#define BACKDATED_US (INT64_C(3600) * SECOND_US)
/* So many times the wait for caBundle: then a pair is served that may not be trusted, rather than
 * none, for caBundle may be somebody else's to fill in. */
#define PATIENCE 10

enum {
    /* The newest and three before: more can only come from many that were made in a row. */
    AUTHORITIES_MAX = 4,
};

static const char end_mark[] = "-----END CERTIFICATE-----\n";

const struct sw_signed_times sw_signed_times = {
    .authority_us = 3650 * DAY_US,
    .certificate_us = 365 * DAY_US,
    .settle_us = 30 * SECOND_US,
    .drop_us = 600 * SECOND_US,
};

/* ---- texts ---- */

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* The first certificate of the text: its length; 0 where there is none. */
static size_t first_len(const char *pem)
{
    const char *end = strstr(or_empty(pem), end_mark);

    return end ? (size_t)(end - pem) + sizeof(end_mark) - 1 : 0;
}

static char *first_of(const char *pem)
{
    return sw_strndup(or_empty(pem), first_len(pem));
}

bool sw_signed_is_trusted(const char *stored, const struct sw_signed_parts *parts)
{
    SW_AUTO(char, sw_free) newest = first_of(parts->authorities);

    return newest[0] && strstr(stored, newest);
}

static char *copy(const char *text)
{
    return text ? sw_strdup(text) : NULL;
}

void sw_signed_parts_copy(struct sw_signed_parts *to, const struct sw_signed_parts *from)
{
    struct sw_signed_parts parts = {
        .certificate = copy(from->certificate),
        .key = copy(from->key),
        .authorities = copy(from->authorities),
        .authority_key = copy(from->authority_key),
    };

    sw_signed_parts_done(to);
    *to = parts;
}

void sw_signed_parts_done(struct sw_signed_parts *parts)
{
    struct sw_tls_pair pair = {parts->certificate, parts->key};
    struct sw_tls_pair authority = {parts->authorities, parts->authority_key};

    sw_tls_pair_done(&pair);
    sw_tls_pair_done(&authority);
    *parts = (struct sw_signed_parts){0};
}

/* ---- what is good ---- */

static bool is_over(const struct sw_tls_facts *facts, int64_t now_us)
{
    return now_us >= facts->not_after_us;
}

/* When two thirds of its life, the backdated hour excepted, are over. */
static int64_t renewal_us(const struct sw_tls_facts *facts, int64_t life_us)
{
    return facts->not_after_us - life_us / 3;
}

static bool read_authority(const struct sw_signed_parts *parts, struct sw_tls_facts *ret_facts)
{
    SW_AUTO(char, sw_free) newest = first_of(parts->authorities);
    struct sw_tls_pair pair = {newest, parts->authority_key};

    return newest[0] && parts->authority_key && !sw_tls_facts_of(newest, ret_facts, NULL) &&
           ret_facts->is_authority && !sw_tls_pair_check(&pair, NULL);
}

bool sw_signed_has_authority(const struct sw_signed_parts *parts, int64_t now_us)
{
    struct sw_tls_facts facts;

    return read_authority(parts, &facts) && !is_over(&facts, now_us);
}

static bool has_names(const char *certificate, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        if (!sw_tls_is_for(certificate, names[i]))
            return false;
    return true;
}

/* Can be served, to those who trust these authorities. */
static bool has_pair(const struct sw_signed_parts *parts, const char *authorities, int64_t now_us,
                     struct sw_tls_facts *ret_facts)
{
    struct sw_tls_pair pair = {parts->certificate, parts->key};

    return parts->certificate && parts->key && !sw_tls_pair_check(&pair, NULL) &&
           !sw_tls_facts_of(parts->certificate, ret_facts, NULL) && !is_over(ret_facts, now_us) &&
           sw_tls_is_issued_by(parts->certificate, authorities);
}

bool sw_signed_has_pair(const struct sw_signed_parts *parts, int64_t now_us)
{
    struct sw_tls_facts facts;

    return parts->authorities && has_pair(parts, parts->authorities, now_us, &facts);
}

/* ---- planning ---- */

static enum sw_signed_step wait(int64_t for_us, int64_t *ret_again_us)
{
    *ret_again_us = SW_MAX(for_us, SECOND_US / 10);
    return SW_SIGNED_NOTHING;
}

/* Whether a pair by the newest authority would be accepted; else when it may. */
static bool may_issue(const struct sw_signed_view *view, bool is_pair_good, int64_t *ret_again_us)
{
    int64_t settle_us = view->times->settle_us;
    int64_t patience_us = is_pair_good ? INT64_MAX : PATIENCE * settle_us;
    int64_t needed_us = view->is_trusted ? settle_us : patience_us;

    if (!view->stored[0] || view->unchanged_us >= needed_us)
        return true;
    *ret_again_us = needed_us == INT64_MAX ? settle_us : needed_us - view->unchanged_us;
    return false;
}

enum sw_signed_step sw_signed_plan(const struct sw_signed_view *view, int64_t *ret_again_us)
{
    const struct sw_signed_parts *parts = view->parts;
    const struct sw_signed_times *times = view->times;
    struct sw_tls_facts authority, pair;

    *ret_again_us = 0;
    if (!read_authority(parts, &authority) ||
        view->now_us >= renewal_us(&authority, times->authority_us))
        return SW_SIGNED_NEW_AUTHORITY;
    SW_AUTO(char, sw_free) newest = first_of(parts->authorities);
    bool is_good = has_pair(parts, parts->authorities, view->now_us, &pair);
    bool is_by_newest = is_good && sw_tls_is_issued_by(parts->certificate, newest);
    if (!is_by_newest || !has_names(parts->certificate, view->names) ||
        view->now_us >= renewal_us(&pair, times->certificate_us))
        return may_issue(view, is_good, ret_again_us) ? SW_SIGNED_ISSUE
                                                      : wait(*ret_again_us, ret_again_us);
    int64_t renewal = SW_MIN(renewal_us(&pair, times->certificate_us),
                             renewal_us(&authority, times->authority_us));
    bool has_older = parts->authorities[strlen(newest)];
    if (has_older && view->is_trusted && view->unchanged_us >= times->drop_us)
        return SW_SIGNED_DROP_OLD;
    int64_t again_us = renewal - view->now_us;
    if (has_older)
        again_us = SW_MIN(again_us, SW_MAX(times->drop_us - view->unchanged_us, times->settle_us));
    return wait(again_us, ret_again_us);
}

/* ---- making ---- */

static int issue(const struct sw_signed_view *view, const struct sw_tls_pair *issuer,
                 struct sw_tls_pair *ret_pair, struct sw_error *error)
{
    bool is_authority = !issuer;
    char now[SW_TIME_SIZE];

    sw_time_format(view->now_us, now);
    /* Different for each: some clients look for an issuer by its name alone. */
    SW_AUTO(char, sw_free) name = sw_asprintf("slipway webhook CA %s", now);
    struct sw_tls_issue_options options = {
        .common_name = is_authority ? name : "slipway webhook",
        .dns_names = is_authority ? NULL : view->names,
        .issuer = issuer,
        .not_before_us = view->now_us - BACKDATED_US,
        .not_after_us =
            view->now_us + (is_authority ? view->times->authority_us : view->times->certificate_us),
    };

    return sw_tls_issue(&options, ret_pair, error);
}

static int issue_by(const struct sw_signed_view *view, const char *authorities,
                    const char *authority_key, struct sw_signed_parts *parts,
                    struct sw_error *error)
{
    SW_AUTO(char, sw_free) newest = first_of(authorities);
    struct sw_tls_pair issuer = {newest, (char *)(uintptr_t)authority_key}, made = {0};
    int code = issue(view, &issuer, &made, error);

    if (code)
        return code;
    parts->certificate = made.certificate_pem;
    parts->key = made.key_pem;
    return 0;
}

/* Those that may be trusted on: what can be read and is not over, at most so many. */
static char *older_of(const char *pem, int64_t now_us)
{
    char *kept = sw_strdup("");
    int count = 1;

    for (size_t len; (len = first_len(pem)) > 0; pem += len) {
        SW_AUTO(char, sw_free) one = sw_strndup(pem, len);
        struct sw_tls_facts facts;
        if (count >= AUTHORITIES_MAX || sw_tls_facts_of(one, &facts, NULL) ||
            is_over(&facts, now_us))
            continue;
        char *longer = sw_asprintf("%s%s", kept, one);
        sw_free(kept);
        kept = longer;
        count++;
    }
    return kept;
}

static int new_authority(const struct sw_signed_view *view, struct sw_signed_parts *parts,
                         struct sw_error *error)
{
    bool is_known = sw_signed_has_authority(view->parts, view->now_us);
    const struct sw_signed_parts *known = is_known ? view->parts : view->before;
    const char *trusted = known->authorities ? known->authorities : view->stored;
    SW_AUTO(char, sw_free) older = older_of(trusted, view->now_us);
    struct sw_tls_pair made = {0};
    struct sw_tls_facts facts;
    int code = issue(view, NULL, &made, error);

    if (code)
        return code;
    parts->authorities = sw_asprintf("%s%s", made.certificate_pem, older);
    parts->authority_key = sw_steal(&made.key_pem);
    sw_tls_pair_done(&made);
    if (has_pair(known, older, view->now_us, &facts)) {
        parts->certificate = copy(known->certificate);
        parts->key = copy(known->key);
        return 0;
    }
    /* Somebody may serve a pair of which we know nothing, and is trusted: ISSUE comes later. */
    if (older[0] && view->stored[0])
        return 0;
    return issue_by(view, parts->authorities, parts->authority_key, parts, error);
}

int sw_signed_make(const struct sw_signed_view *view, enum sw_signed_step step,
                   struct sw_signed_parts *ret_parts, struct sw_error *error)
{
    struct sw_signed_parts parts = {0};
    int code = 0;

    if (step == SW_SIGNED_NEW_AUTHORITY) {
        code = new_authority(view, &parts, error);
    } else {
        sw_signed_parts_copy(&parts, view->parts);
        if (step == SW_SIGNED_DROP_OLD) {
            sw_free(parts.authorities);
            parts.authorities = first_of(view->parts->authorities);
        } else if (step == SW_SIGNED_ISSUE) {
            struct sw_tls_pair old = {parts.certificate, parts.key};
            sw_tls_pair_done(&old);
            parts.certificate = parts.key = NULL;
            code = issue_by(view, parts.authorities, parts.authority_key, &parts, error);
        }
    }
    if (code)
        sw_signed_parts_done(&parts);
    else
        *ret_parts = parts;
    return code;
}
