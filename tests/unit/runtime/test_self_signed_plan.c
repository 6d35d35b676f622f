/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates of our own: each step, and many of them in a row with API servers and replicas that
 * hear of changes late. What is asked for is always the same: whoever serves is trusted.
 */
#include "runtime/self_signed_plan.h"

#include "base/error.h"
#include "base/util.h"
#include "net/tls_issue.h"

#include "../test.h"

#define S INT64_C(1000000)
#define NOW (INT64_C(1767225600) * S)

static const char *const names[] = {"slipway.ns.svc", "slipway.ns.svc.cluster.local", NULL};
static const struct sw_signed_times times = {
    .authority_us = 90 * S, .certificate_us = 30 * S, .settle_us = 2 * S, .drop_us = 6 * S};
static const struct sw_signed_parts nothing;

static struct sw_signed_view view_of(const struct sw_signed_parts *parts, const char *stored,
                                     int64_t now_us, int64_t unchanged_us)
{
    struct sw_signed_view view = {
        .parts = parts,
        .before = &nothing,
        .stored = stored,
        .is_trusted = parts->authorities && sw_signed_is_trusted(stored, parts),
        .names = names,
        .times = &times,
        .now_us = now_us,
        .unchanged_us = unchanged_us,
    };
    return view;
}

static void make(const struct sw_signed_view *view, enum sw_signed_step step,
                 struct sw_signed_parts *parts)
{
    struct sw_error error = {0};

    if (sw_signed_make(view, step, parts, &error))
        fail_msg("%s", error.text);
}

static void expect(const struct sw_signed_view *view, enum sw_signed_step wanted)
{
    int64_t again_us;

    assert_int_equal(sw_signed_plan(view, &again_us), wanted);
    if (wanted == SW_SIGNED_NOTHING)
        assert_true(again_us > 0);
}

static int count_of(const char *pem)
{
    int count = 0;

    while ((pem = strstr(pem, "BEGIN CERTIFICATE")) && ++count)
        pem++;
    return count;
}

/* All at once, at NOW. */
static void begin(struct sw_signed_parts *parts)
{
    struct sw_signed_view view = view_of(&nothing, "", NOW, 0);

    expect(&view, SW_SIGNED_NEW_AUTHORITY);
    make(&view, SW_SIGNED_NEW_AUTHORITY, parts);
}

TEST(are_made_at_once_where_nobody_is_trusted_yet)
{
    struct sw_signed_parts parts;

    begin(&parts);
    assert_true(sw_signed_has_authority(&parts, NOW));
    assert_true(sw_signed_has_pair(&parts, NOW));
    assert_int_equal(count_of(parts.authorities), 1);
    for (size_t i = 0; names[i]; i++)
        assert_true(sw_tls_is_for(parts.certificate, names[i]));
    struct sw_signed_view view = view_of(&parts, "", NOW, 0);
    expect(&view, SW_SIGNED_NOTHING);
    struct sw_tls_facts facts;
    assert_int_equal(sw_tls_facts_of(parts.certificate, &facts, NULL), 0);
    assert_true(facts.not_before_us == NOW - 3600 * S);
    sw_signed_parts_done(&parts);
}

TEST(are_renewed_at_two_thirds_of_their_life)
{
    struct sw_signed_parts parts, next;

    begin(&parts);
    struct sw_signed_view view = view_of(&parts, parts.authorities, NOW + 20 * S - 1, 20 * S);
    expect(&view, SW_SIGNED_NOTHING);
    view.now_us++;
    expect(&view, SW_SIGNED_ISSUE);
    make(&view, SW_SIGNED_ISSUE, &next);
    assert_string_equal(next.authorities, parts.authorities);
    assert_string_not_equal(next.certificate, parts.certificate);
    assert_true(sw_tls_is_issued_by(next.certificate, parts.authorities));
    sw_signed_parts_done(&next);
    sw_signed_parts_done(&parts);
}

TEST(a_new_authority_is_trusted_before_it_signs_and_the_old_one_goes_last)
{
    struct sw_signed_parts parts, added, issued, last;

    begin(&parts);
    struct sw_signed_view view = view_of(&parts, parts.authorities, NOW + 60 * S, 60 * S);
    expect(&view, SW_SIGNED_NEW_AUTHORITY);
    make(&view, SW_SIGNED_NEW_AUTHORITY, &added);
    assert_int_equal(count_of(added.authorities), 2);
    assert_non_null(strstr(added.authorities, parts.authorities));
    /* In the end the certificate of 30 s is over too; here it is young. */
    view = view_of(&added, parts.authorities, NOW + 1 * S, 60 * S);
    assert_string_equal(added.certificate ? added.certificate : "",
                        added.certificate ? parts.certificate : "");
    expect(&view, added.certificate ? SW_SIGNED_NOTHING : SW_SIGNED_ISSUE);
    view = view_of(&added, added.authorities, NOW + 61 * S, 2 * S - 1);
    expect(&view, SW_SIGNED_NOTHING);
    view.unchanged_us++;
    expect(&view, SW_SIGNED_ISSUE);
    make(&view, SW_SIGNED_ISSUE, &issued);
    assert_string_equal(issued.authorities, added.authorities);
    assert_false(sw_tls_is_issued_by(issued.certificate, parts.authorities));
    view = view_of(&issued, added.authorities, NOW + 62 * S, 6 * S - 1);
    expect(&view, SW_SIGNED_NOTHING);
    view.unchanged_us++;
    expect(&view, SW_SIGNED_DROP_OLD);
    make(&view, SW_SIGNED_DROP_OLD, &last);
    assert_int_equal(count_of(last.authorities), 1);
    assert_string_equal(last.certificate, issued.certificate);
    assert_true(sw_tls_is_issued_by(last.certificate, last.authorities));
    sw_signed_parts_done(&parts);
    sw_signed_parts_done(&added);
    sw_signed_parts_done(&issued);
    sw_signed_parts_done(&last);
}

TEST(for_another_service_are_issued_anew)
{
    static const char *const others[] = {"other.ns.svc", NULL};
    struct sw_signed_parts parts;

    begin(&parts);
    struct sw_signed_view view = view_of(&parts, parts.authorities, NOW, 2 * S);
    expect(&view, SW_SIGNED_NOTHING);
    view.names = others;
    expect(&view, SW_SIGNED_ISSUE);
    sw_signed_parts_done(&parts);
}

TEST(wait_no_longer_than_a_while_for_a_bundle_that_never_comes)
{
    struct sw_signed_parts parts, added;
    struct sw_signed_view view;

    begin(&parts);
    /* Nobody here knows the pair that others may serve. */
    view = view_of(&nothing, parts.authorities, NOW, 0);
    make(&view, SW_SIGNED_NEW_AUTHORITY, &added);
    assert_null(added.certificate);
    assert_int_equal(count_of(added.authorities), 2);
    view = view_of(&added, parts.authorities, NOW, 20 * S - 1);
    expect(&view, SW_SIGNED_NOTHING);
    view.unchanged_us++;
    expect(&view, SW_SIGNED_ISSUE);
    sw_signed_parts_done(&parts);
    sw_signed_parts_done(&added);
}

TEST(that_were_garbled_are_made_anew_with_what_was_known_before)
{
    struct sw_signed_parts parts, next;
    struct sw_signed_parts garbled[] = {
        {.authorities = NULL}, {.authorities = NULL}, {.authorities = NULL}, {.authorities = NULL}};

    begin(&parts);
    for (size_t i = 0; i < SW_ARRAY_SIZE(garbled); i++)
        sw_signed_parts_copy(&garbled[i], &parts);
    garbled[0].authorities[40] ^= 1;
    garbled[1].authority_key[60] ^= 1;
    sw_free(garbled[2].authority_key);
    garbled[2].authority_key = sw_strdup(parts.key);
    sw_free(garbled[3].authorities);
    garbled[3].authorities = sw_strdup("what is this?");
    for (size_t i = 0; i < SW_ARRAY_SIZE(garbled); i++) {
        struct sw_signed_view view = view_of(&garbled[i], parts.authorities, NOW, 100 * S);
        view.before = &parts;
        expect(&view, SW_SIGNED_NEW_AUTHORITY);
        make(&view, SW_SIGNED_NEW_AUTHORITY, &next);
        assert_string_equal(next.certificate, parts.certificate);
        assert_string_equal(next.key, parts.key);
        assert_int_equal(count_of(next.authorities), 2);
        assert_non_null(strstr(next.authorities, parts.authorities));
        sw_signed_parts_done(&next);
        sw_signed_parts_done(&garbled[i]);
    }
    /* The pair alone: the authority signs another at once. */
    sw_signed_parts_copy(&garbled[0], &parts);
    garbled[0].key[60] ^= 1;
    struct sw_signed_view view = view_of(&garbled[0], parts.authorities, NOW, 2 * S);
    expect(&view, SW_SIGNED_ISSUE);
    sw_signed_parts_done(&garbled[0]);
    sw_signed_parts_done(&parts);
}

/* ---- many in a row ---- */

enum { TICK_MS = 250, TICKS = 4 * 200, LAG_TICKS = 7, REPLICAS = 3 };

struct replica {
    char *certificate;   /* served; NULL: nothing yet */
    unsigned lag;        /* ticks behind */
    const char *checked; /* the bundle that it was last checked against */
};

struct world {
    struct sw_signed_parts secret[TICKS + 1]; /* of each tick */
    char *stored[TICKS + 1];
    struct replica replicas[REPLICAS];
    struct sw_signed_parts before; /* of the leader */
    uint64_t random;
    unsigned steps[4];
};

static unsigned chance(struct world *w, unsigned below)
{
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(w->random >> 33) % below;
}

static void adopt(struct replica *r, const struct sw_signed_parts *secret, int64_t now_us)
{
    const char *pair = secret->certificate ? secret->certificate : "";

    if (r->certificate && strcmp(r->certificate, pair) == 0)
        return;
    if (!sw_signed_has_authority(secret, now_us) || !sw_signed_has_pair(secret, now_us))
        return;
    sw_free(r->certificate);
    r->certificate = sw_strdup(secret->certificate);
    r->checked = NULL;
}

static void trouble(struct world *w, unsigned tick)
{
    struct sw_signed_parts *secret = &w->secret[tick];

    if (chance(w, 150) == 0)
        sw_signed_parts_done(secret); /* somebody deletes it */
    else if (chance(w, 150) == 0 && secret->authority_key)
        secret->authority_key[60] ^= 1;
    if (chance(w, 100) == 0)
        sw_signed_parts_done(&w->before); /* another leads, or the same after a restart */
    if (chance(w, 40) == 0)
        w->replicas[chance(w, REPLICAS)].lag = chance(w, LAG_TICKS);
}

static bool is_same(const struct sw_signed_parts *a, const struct sw_signed_parts *b)
{
    const char *const pairs[][2] = {{a->authorities, b->authorities},
                                    {a->authority_key, b->authority_key},
                                    {a->certificate, b->certificate}};
    for (size_t i = 0; i < SW_ARRAY_SIZE(pairs); i++) {
        const char *one = pairs[i][0] ? pairs[i][0] : "", *two = pairs[i][1] ? pairs[i][1] : "";
        if (strcmp(one, two) != 0)
            return false;
    }
    return true;
}

/* The leader: caBundle follows the Secret, and the plan is carried out. True if something changed.
 */
static bool lead(struct world *w, unsigned tick, int64_t now_us, int64_t unchanged_us,
                 int64_t *ret_due_us)
{
    struct sw_signed_parts *secret = &w->secret[tick];
    bool is_good = sw_signed_has_authority(secret, now_us), has_changed = false;
    int64_t again_us;

    if (is_good && strcmp(w->stored[tick], secret->authorities) != 0) {
        sw_free(w->stored[tick]);
        w->stored[tick] = sw_strdup(secret->authorities);
        has_changed = true;
    }
    if (is_good && sw_signed_has_pair(secret, now_us))
        sw_signed_parts_copy(&w->before, secret);
    struct sw_signed_view view =
        view_of(secret, w->stored[tick], now_us, has_changed ? 0 : unchanged_us);
    view.before = &w->before;
    enum sw_signed_step step = sw_signed_plan(&view, &again_us);
    w->steps[step]++;
    *ret_due_us = now_us + again_us;
    if (step == SW_SIGNED_NOTHING)
        return has_changed;
    struct sw_signed_parts made;
    make(&view, step, &made);
    sw_signed_parts_done(secret);
    *secret = made;
    return true;
}

static void run_world(uint64_t seed, bool has_trouble)
{
    struct world *w = SW_NEW(struct world);
    int64_t unchanged_us = 0, due_us = 0;
    bool was_changed = false;

    w->random = seed;
    w->stored[0] = sw_strdup("");
    for (unsigned tick = 1; tick <= TICKS; tick++) {
        int64_t now_us = NOW + tick * (TICK_MS * S / 1000);
        struct sw_signed_parts *secret = &w->secret[tick];
        sw_signed_parts_copy(secret, &w->secret[tick - 1]);
        if (has_trouble && tick > 40)
            trouble(w, tick);
        bool has_changed = tick == 1 || was_changed || !is_same(secret, &w->secret[tick - 1]);
        unchanged_us = has_changed ? 0 : unchanged_us + TICK_MS * S / 1000;
        w->stored[tick] = sw_strdup(w->stored[tick - 1]);
        was_changed = false;
        if (has_changed || now_us >= due_us)
            was_changed = lead(w, tick, now_us, unchanged_us, &due_us);
        /* Each hears of it later, and so does the API server that asks it. */
        unsigned lag = chance(w, LAG_TICKS);
        for (unsigned i = 0; i < REPLICAS; i++) {
            struct replica *r = &w->replicas[i];
            adopt(r, &w->secret[tick - SW_MIN(r->lag, tick)], now_us);
            const char *bundle = w->stored[tick - SW_MIN(lag, tick)];
            if (!r->certificate || !bundle[0])
                continue; /* the beginning */
            struct sw_tls_facts facts;
            assert_int_equal(sw_tls_facts_of(r->certificate, &facts, NULL), 0);
            bool is_checked = r->checked && strcmp(r->checked, bundle) == 0;
            r->checked = bundle;
            if (now_us >= facts.not_after_us ||
                (!is_checked && !sw_tls_is_issued_by(r->certificate, bundle)))
                fail_msg("seed %llu, tick %u: replica %u is not trusted", (unsigned long long)seed,
                         tick, i);
        }
    }
    assert_true(w->steps[SW_SIGNED_NEW_AUTHORITY] >= 3);
    assert_true(w->steps[SW_SIGNED_ISSUE] >= 5);
    assert_true(w->steps[SW_SIGNED_DROP_OLD] >= 2);
    for (unsigned tick = 0; tick <= TICKS; tick++) {
        sw_signed_parts_done(&w->secret[tick]);
        sw_free(w->stored[tick]);
    }
    for (unsigned i = 0; i < REPLICAS; i++)
        sw_free(w->replicas[i].certificate);
    sw_signed_parts_done(&w->before);
    sw_free(w);
}

TEST(are_trusted_through_many_renewals)
{
    run_world(1, false);
}

TEST(are_trusted_whatever_becomes_of_the_secret)
{
    run_world(2, true);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("self_signed: certificates", are_made_at_once_where_nobody_is_trusted_yet),
        CASE("self_signed: certificates", are_renewed_at_two_thirds_of_their_life),
        CASE("self_signed: certificates",
             a_new_authority_is_trusted_before_it_signs_and_the_old_one_goes_last),
        CASE("self_signed: certificates", for_another_service_are_issued_anew),
        CASE("self_signed: certificates",
             wait_no_longer_than_a_while_for_a_bundle_that_never_comes),
        CASE("self_signed: certificates",
             that_were_garbled_are_made_anew_with_what_was_known_before),
        CASE("self_signed: certificates", are_trusted_through_many_renewals),
        CASE("self_signed: certificates", are_trusted_whatever_becomes_of_the_secret),
    };
    return RUN(tests);
}
