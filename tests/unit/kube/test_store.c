/* SPDX-License-Identifier: Apache-2.0 */
/* The store: what it takes and refuses, what it tells, and when it frees. */
#include "test.h"

#include <inttypes.h>

#include <slipway/apps.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/util.h"
#include "generate.h"
#include "kube/decode.h"
#include "kube/store.h"

struct bench {
    struct sw_loop *loop;
    struct sw_intern *intern;
    struct sw_decoder *decoder;
    struct sw_store *store;
    struct sw_buf said; /* the changes as text */
    void (*react)(struct bench *b, const struct sw_change *change);
    int reactions;
};

static void on_change(void *arg, const struct sw_change *change)
{
    static const char *const signs[] = {"+", "~", "-"};
    struct bench *b = arg;
    const struct sw_object *of = change->now ? change->now : change->old;
    assert_int_equal(change->old == NULL, change->type == SW_CHANGE_ADDED);
    assert_int_equal(change->now == NULL, change->type == SW_CHANGE_DELETED);
    sw_assert(sw_buf_printf(&b->said, "%s%s/%s", signs[change->type], of->namespace_, of->name) ==
              0);
    if (change->old) { /* still readable, whatever happened since */
        sw_assert(sw_buf_printf(&b->said, ":%s@%s", change->old->uid,
                                change->old->resource_version) == 0);
    }
    if (change->now) {
        sw_assert(sw_buf_printf(&b->said, ">%s@%s", change->now->uid,
                                change->now->resource_version) == 0);
    }
    sw_assert(sw_buf_puts(&b->said, change->is_from_list ? "L " : " ") == 0);
    if (b->react) {
        b->react(b, change);
    }
}

static struct bench *bench_new(void)
{
    struct bench *b = SW_NEW(struct bench);
    b->loop = sw_loop_virtual_new(0, 1);
    b->intern = sw_intern_new();
    b->decoder = sw_decoder_new(&sw_kind_deployment, b->intern);
    b->store = sw_store_new(b->loop, b->decoder, on_change, b);
    sw_buf_init(&b->said, SIZE_MAX);
    return b;
}

static void bench_done(struct bench *b)
{
    sw_store_free(b->store);
    sw_decoder_free(b->decoder);
    assert_int_equal(sw_intern_size(b->intern), 0);
    sw_intern_free(b->intern);
    sw_buf_done(&b->said);
    assert_int_equal(sw_loop_close(b->loop), 0);
    sw_free(b);
}

static struct sw_object *object_new(struct bench *b, const char *namespace_, const char *name,
                                    const char *uid, const char *version, const char *owner)
{
    struct sw_object *object = NULL;
    char *text = sw_asprintf("{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\","
                             "\"resourceVersion\":\"%s\",\"ownerReferences\":[{\"uid\":\"%s\","
                             "\"controller\":true}]}}",
                             namespace_, name, uid, version, owner);
    assert_int_equal(sw_decode_object(b->decoder, text, strlen(text), NULL, &object, NULL), 0);
    sw_free(text);
    return object;
}

static bool put(struct bench *b, const char *name, const char *uid, const char *version)
{
    return sw_store_put_take(b->store, object_new(b, "ns", name, uid, version, ""));
}

static void add(struct bench *b, const char *name, const char *uid, const char *version)
{
    sw_store_replace_add_take(b->store, object_new(b, "ns", name, uid, version, ""));
}

static void said(struct bench *b, const char *want)
{
    assert_string_equal(b->said.bytes, want);
    sw_buf_clear(&b->said);
}

static const char *version_of(struct bench *b, const char *name)
{
    const struct sw_object *object = sw_store_get(b->store, "ns", name);
    return object ? object->resource_version : NULL;
}

/* ---- putting and deleting ---- */

TEST(tells_what_changes)
{
    struct bench *b = bench_new();
    assert_true(put(b, "a", "1", "5"));
    said(b, "+ns/a>1@5 ");
    assert_true(put(b, "a", "1", "7"));
    said(b, "~ns/a:1@5>1@7 ");
    assert_true(put(b, "a", "1", "7"));
    said(b, "");
    assert_true(sw_store_delete(b->store, "ns", "a", "1", "8"));
    said(b, "-ns/a:1@7 ");
    assert_null(version_of(b, "a"));
    assert_int_equal(sw_store_size(b->store), 0);
    assert_false(sw_store_delete(b->store, "ns", "a", "1", "9"));
    assert_false(sw_store_delete(b->store, "other", "a", NULL, NULL));
    said(b, "");
    bench_done(b);
}

TEST(never_goes_back)
{
    struct bench *b = bench_new();
    assert_true(put(b, "a", "1", "100"));
    assert_false(put(b, "a", "1", "99"));
    assert_string_equal(version_of(b, "a"), "100");
    assert_false(sw_store_delete(b->store, "ns", "a", "1", "99"));
    assert_string_equal(version_of(b, "a"), "100");
    assert_true(put(b, "a", "1", "1000")); /* longer is newer */
    assert_false(put(b, "a", "0", "101")); /* an earlier object of that name */
    assert_true(put(b, "a", "1", "opaque"));
    assert_true(put(b, "a", "1", "3")); /* nothing can be said any more */
    assert_string_equal(version_of(b, "a"), "3");
    said(b, "+ns/a>1@100 ~ns/a:1@100>1@1000 ~ns/a:1@1000>1@opaque ~ns/a:1@opaque>1@3 ");
    bench_done(b);
}

TEST(tells_another_uid_as_deleted_and_added)
{
    struct bench *b = bench_new();
    assert_true(put(b, "a", "1", "5"));
    assert_true(put(b, "a", "2", "9"));
    said(b, "+ns/a>1@5 -ns/a:1@5 +ns/a>2@9 ");
    assert_false(sw_store_delete(b->store, "ns", "a", "1", "10")); /* of the one that is gone */
    assert_string_equal(version_of(b, "a"), "9");
    assert_true(sw_store_delete(b->store, "ns", "a", "", ""));
    said(b, "-ns/a:2@9 ");
    bench_done(b);
}

TEST(does_not_bring_back_what_was_deleted)
{
    struct bench *b = bench_new();
    assert_true(put(b, "a", "1", "5"));
    assert_true(sw_store_delete(b->store, "ns", "a", "1", "9"));
    assert_false(put(b, "a", "1", "8")); /* the late answer to a write of ours */
    assert_false(put(b, "a", "1", "9"));
    assert_true(put(b, "a", "2", "7"));  /* another object of that name */
    assert_true(put(b, "a", "1", "10")); /* it matches the selector of the watch again */
    assert_true(sw_store_delete(b->store, "ns", "a", "1", "")); /* 404 */
    assert_false(put(b, "a", "1", "11"));
    /* Deletions of what the store never had count too. */
    assert_false(sw_store_delete(b->store, "ns", "b", "3", "20"));
    assert_false(put(b, "b", "3", "19"));
    sw_loop_virtual_advance(b->loop, 5 * 60 * 1000);
    assert_true(put(b, "b", "3", "19"));
    said(b, "+ns/a>1@5 -ns/a:1@5 +ns/a>2@7 -ns/a:2@7 +ns/a>1@10 -ns/a:1@10 +ns/b>3@19 ");
    bench_done(b);
}

TEST(forgets_the_oldest_of_very_many_deletions)
{
    struct bench *b = bench_new();
    char uid[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(uid, sizeof(uid), "u%d", i);
        assert_false(sw_store_delete(b->store, "ns", "a", uid, "50"));
    }
    assert_false(put(b, "a", "u19999", "40"));
    assert_false(put(b, "a", "u3616", "40")); /* 20 000 - 16 384 */
    assert_true(put(b, "a", "u3615", "40"));
    bench_done(b);
}

/* ---- freeing ---- */

TEST(frees_after_the_loop_has_turned)
{
    struct bench *b = bench_new();
    put(b, "a", "1", "5");
    size_t one = sw_store_bytes(b->store);
    const struct sw_object *first = sw_store_get(b->store, "ns", "a");
    put(b, "a", "1", "6");
    const struct sw_object *second = sw_store_get(b->store, "ns", "a");
    sw_store_delete(b->store, "ns", "a", "1", "7");
    /* A sanitizer would tell. */
    assert_string_equal(first->resource_version, "5");
    assert_string_equal(second->resource_version, "6");
    assert_true(sw_store_bytes(b->store) > one);
    sw_loop_virtual_advance(b->loop, 0);
    put(b, "a", "2", "8");
    assert_int_equal(sw_store_bytes(b->store), one);
    bench_done(b);
}

static int deferred_calls;
static const struct sw_object *held;

static void use_held(struct sw_defer *defer)
{
    (void)defer;
    deferred_calls++;
    assert_string_equal(held->resource_version, "5");
}

TEST(frees_after_what_was_deferred_in_the_same_turn)
{
    struct bench *b = bench_new();
    struct sw_defer defer;
    deferred_calls = 0;
    put(b, "a", "1", "5");
    held = sw_store_get(b->store, "ns", "a");
    put(b, "a", "1", "6");
    sw_defer_init(&defer, b->loop, use_held);
    sw_defer_start(&defer); /* behind whatever the store has asked for */
    sw_loop_virtual_advance(b->loop, 0);
    assert_int_equal(deferred_calls, 1);
    bench_done(b);
}

TEST(frees_all_with_itself)
{
    struct bench *b = bench_new();
    put(b, "a", "1", "5");
    put(b, "a", "1", "6");
    put(b, "b", "2", "6");
    sw_store_replace_begin(b->store);
    add(b, "b", "2", "7");
    add(b, "c", "3", "7");
    bench_done(b); /* asserts that nothing is left */
}

/* ---- relists ---- */

TEST(replaces_in_one_step)
{
    struct bench *b = bench_new();
    put(b, "same", "1", "5");
    put(b, "newer", "2", "6");
    put(b, "gone", "3", "7");
    put(b, "other", "4", "8");
    sw_buf_clear(&b->said);
    sw_store_replace_begin(b->store);
    add(b, "new", "6", "15");
    add(b, "same", "1", "5");
    add(b, "newer", "2", "16");
    add(b, "other", "5", "17");
    said(b, "");
    assert_int_equal(sw_store_size(b->store), 4);
    assert_null(version_of(b, "new"));
    assert_string_equal(version_of(b, "newer"), "6");
    sw_store_replace_commit(b->store, "20");
    said(b, "-ns/gone:3@7L +ns/new>6@15L ~ns/newer:2@6>2@16L -ns/other:4@8L +ns/other>5@17L ");
    assert_int_equal(sw_store_size(b->store), 4);
    assert_false(put(b, "gone", "3", "19")); /* it was gone at 20 */
    assert_true(put(b, "gone", "3", "21"));
    bench_done(b);
}

TEST(keeps_what_the_list_could_not_know)
{
    struct bench *b = bench_new();
    put(b, "older", "1", "5");
    put(b, "was-put", "2", "6");
    sw_store_replace_begin(b->store);
    add(b, "was-put", "2", "6");
    assert_true(put(b, "was-put", "2", "25"));
    assert_true(put(b, "was-made", "3", "26"));
    add(b, "was-deleted", "4", "9");
    assert_false(sw_store_delete(b->store, "ns", "was-deleted", "4", "27"));
    assert_true(sw_store_delete(b->store, "ns", "older", "1", "28"));
    add(b, "older", "1", "5");
    sw_buf_clear(&b->said);
    sw_store_replace_commit(b->store, "20");
    said(b, "");
    assert_string_equal(version_of(b, "was-put"), "25");
    assert_string_equal(version_of(b, "was-made"), "26");
    assert_null(version_of(b, "was-deleted"));
    assert_null(version_of(b, "older"));
    bench_done(b);
}

/* etcd came back from a backup, and has gone on since. */
TEST(goes_back_with_a_list_that_must_know)
{
    struct bench *b = bench_new();
    put(b, "changed", "1", "15");
    put(b, "deleted", "2", "6");
    sw_store_delete(b->store, "ns", "deleted", "2", "16");
    put(b, "other", "3", "17");
    put(b, "put", "4", "25");
    put(b, "x", "5", "7");
    sw_store_delete(b->store, "ns", "x", "5", ""); /* 404: gone for good, whatever versions say */
    sw_buf_clear(&b->said);
    assert_false(put(b, "changed", "1", "5"));
    sw_store_replace_begin(b->store);
    add(b, "changed", "1", "5");
    add(b, "deleted", "2", "6");
    add(b, "other", "7", "8");
    add(b, "put", "4", "9");
    add(b, "x", "5", "7");
    sw_store_replace_commit(b->store, "20");
    said(b, "~ns/changed:1@15>1@5L +ns/deleted>2@6L -ns/other:3@17L +ns/other>7@8L ");
    assert_string_equal(version_of(b, "put"), "25"); /* that it could not know */
    assert_true(put(b, "changed", "1", "14"));       /* and from there on */
    bench_done(b);
}

TEST(begins_anew_where_versions_have_gone_back)
{
    struct bench *b = bench_new();
    put(b, "same", "1", "5");
    put(b, "reused", "2", "15");
    put(b, "lost", "3", "16");
    put(b, "deleted", "4", "6");
    sw_store_delete(b->store, "ns", "deleted", "4", "17");
    sw_buf_clear(&b->said);
    sw_store_replace_begin(b->store);
    add(b, "same", "1", "5");
    add(b, "reused", "2", "15"); /* the same version of another history */
    add(b, "deleted", "4", "6");
    sw_store_replace_commit_anew(b->store, "15");
    said(b, "-ns/lost:3@16L ~ns/same:1@5>1@5L ~ns/reused:2@15>2@15L +ns/deleted>4@6L ");
    assert_true(put(b, "lost", "5", "16"));
    assert_false(put(b, "same", "1", "4"));
    bench_done(b);
}

TEST(puts_and_deletes_while_a_list_is_read)
{
    struct bench *b = bench_new();
    sw_store_replace_begin(b->store);
    add(b, "a", "1", "10");
    assert_true(put(b, "a", "1", "5")); /* the store has nothing newer yet */
    assert_true(sw_store_delete(b->store, "ns", "a", "1", "6"));
    assert_null(version_of(b, "a"));
    sw_store_replace_commit(b->store, "20"); /* it came back, as far as versions say */
    said(b, "+ns/a>1@5 -ns/a:1@5 +ns/a>1@10L ");
    bench_done(b);
}

TEST(lets_the_last_of_an_item_listed_twice_count)
{
    struct bench *b = bench_new();
    sw_store_replace_begin(b->store);
    add(b, "a", "1", "10");
    add(b, "a", "1", "11");
    sw_store_replace_commit(b->store, "20");
    said(b, "+ns/a>1@11L ");
    bench_done(b);
}

TEST(forgets_a_list_that_broke_off)
{
    struct bench *b = bench_new();
    put(b, "a", "1", "5");
    sw_buf_clear(&b->said);
    sw_store_replace_begin(b->store);
    add(b, "a", "1", "10");
    add(b, "b", "2", "10");
    sw_store_replace_abort(b->store);
    said(b, "");
    assert_string_equal(version_of(b, "a"), "5");
    assert_null(version_of(b, "b"));
    sw_store_replace_begin(b->store);
    add(b, "b", "2", "10");
    sw_store_replace_begin(b->store); /* anew */
    add(b, "c", "3", "10");
    sw_store_replace_commit(b->store, "20");
    said(b, "-ns/a:1@5L +ns/c>3@10L ");
    bench_done(b);
}

TEST(takes_an_empty_list)
{
    struct bench *b = bench_new();
    put(b, "a", "1", "5");
    put(b, "b", "2", "opaque");
    sw_buf_clear(&b->said);
    sw_store_replace_begin(b->store);
    sw_store_replace_commit(b->store, "20");
    said(b, "-ns/a:1@5L -ns/b:2@opaqueL ");
    assert_int_equal(sw_store_size(b->store), 0);
    bench_done(b);
}

/* ---- from within ---- */

static void write_again(struct bench *b, const struct sw_change *change)
{
    if (change->type == SW_CHANGE_ADDED && b->reactions++ == 0) {
        assert_true(put(b, "a", "1", "6"));
        assert_string_equal(version_of(b, "a"), "6"); /* at once */
        assert_true(put(b, "b", "2", "7"));
        assert_true(sw_store_delete(b->store, "ns", "a", "1", "8"));
        assert_null(version_of(b, "a"));
        assert_string_equal(change->now->resource_version, "5");
        sw_assert(sw_buf_puts(&b->said, "| ") == 0);
    }
}

TEST(tells_changes_made_meanwhile_in_order)
{
    struct bench *b = bench_new();
    b->react = write_again;
    put(b, "a", "1", "5");
    said(b, "+ns/a>1@5 | ~ns/a:1@5>1@6 +ns/b>2@7 -ns/a:1@6 ");
    bench_done(b);
}

static void replace_again(struct bench *b, const struct sw_change *change)
{
    if (change->type == SW_CHANGE_DELETED && b->reactions++ == 0) {
        sw_store_replace_begin(b->store);
        add(b, "z", "9", "30");
        sw_store_replace_commit(b->store, "40");
    }
}

TEST(lets_a_list_be_applied_while_it_tells)
{
    struct bench *b = bench_new();
    put(b, "a", "1", "5");
    b->react = replace_again;
    sw_buf_clear(&b->said);
    sw_store_replace_begin(b->store);
    add(b, "b", "2", "10");
    sw_store_replace_commit(b->store, "20");
    said(b, "-ns/a:1@5L +ns/b>2@10L -ns/b:2@10L +ns/z>9@30L ");
    bench_done(b);
}

/* ---- looking ---- */

struct walk {
    struct bench *b;
    char seen[200];
    int stops_after;
    void (*react)(struct walk *walk, const struct sw_object *object);
};

static bool visit(void *arg, const struct sw_object *object)
{
    struct walk *walk = arg;
    size_t len = strlen(walk->seen);
    snprintf(walk->seen + len, sizeof(walk->seen) - len, "%s/%s ", object->namespace_,
             object->name);
    if (walk->react) {
        walk->react(walk, object);
    }
    return --walk->stops_after != 0;
}

static struct bench *bench_with_six(void)
{
    static const char *const keys[][3] = {{"x", "1", "o"}, {"y", "2", "p"}, {"x", "3", "p"},
                                          {"y", "4", "o"}, {"x", "5", ""},  {"x", "6", "o"}};
    struct bench *b = bench_new();
    for (size_t i = 0; i < SW_ARRAY_SIZE(keys); i++) {
        assert_true(sw_store_put_take(
            b->store, object_new(b, keys[i][0], keys[i][1], keys[i][1], "5", keys[i][2])));
    }
    return b;
}

TEST(lists_by_namespace_and_owner)
{
    struct bench *b = bench_with_six();
    struct walk all = {b};
    struct walk x = {b};
    struct walk o = {b};
    struct walk nothing = {b};
    struct walk two = {b, .stops_after = 2};
    sw_store_each(b->store, NULL, visit, &all);
    assert_string_equal(all.seen, "x/1 y/2 x/3 y/4 x/5 x/6 ");
    sw_store_each(b->store, "x", visit, &x);
    assert_string_equal(x.seen, "x/1 x/3 x/5 x/6 ");
    sw_store_each_owned(b->store, "o", visit, &o);
    assert_string_equal(o.seen, "x/1 y/4 x/6 ");
    sw_store_each(b->store, "z", visit, &nothing);
    sw_store_each_owned(b->store, "q", visit, &nothing);
    sw_store_each_owned(b->store, "", visit, &nothing);
    assert_string_equal(nothing.seen, "");
    sw_store_each(b->store, NULL, visit, &two);
    assert_string_equal(two.seen, "x/1 y/2 ");
    bench_done(b);
}

TEST(moves_an_object_whose_owner_changes)
{
    struct bench *b = bench_with_six();
    struct walk o = {b};
    struct walk p = {b};
    sw_store_put_take(b->store, object_new(b, "x", "1", "1", "6", "p"));
    sw_store_put_take(b->store, object_new(b, "y", "4", "4", "6", ""));
    sw_store_delete(b->store, "y", "2", "2", "6");
    sw_store_each_owned(b->store, "o", visit, &o);
    sw_store_each_owned(b->store, "p", visit, &p);
    assert_string_equal(o.seen, "x/6 ");
    assert_string_equal(p.seen, "x/3 x/1 ");
    bench_done(b);
}

static void delete_next(struct walk *walk, const struct sw_object *object)
{
    int number = object->name[0] - '0';
    const char next[2] = {(char)('0' + number + 1), 0};
    sw_store_delete(walk->b->store, "x", next, NULL, NULL);
    sw_store_delete(walk->b->store, "y", next, NULL, NULL);
    sw_store_delete(walk->b->store, object->namespace_, object->name, NULL, NULL);
    assert_true(object->name[0]); /* until the loop turns */
    sw_store_put_take(walk->b->store, object_new(walk->b, "x", number % 2 ? "new" : "newer", "n",
                                                 number % 2 ? "7" : "8", "o"));
}

TEST(can_be_changed_by_a_walk)
{
    struct bench *b = bench_with_six();
    struct walk walk = {b, .react = delete_next};
    sw_store_each(b->store, NULL, visit, &walk);
    assert_string_equal(walk.seen, "x/1 x/3 x/5 ");
    assert_int_equal(sw_store_size(b->store), 1);
    bench_done(b);
    b = bench_with_six();
    struct walk owned = {b, .react = delete_next};
    sw_store_each_owned(b->store, "o", visit, &owned);
    assert_string_equal(owned.seen, "x/1 y/4 x/6 ");
    bench_done(b);
}

static void walk_again(struct walk *walk, const struct sw_object *object)
{
    struct walk inner = {walk->b, .react = delete_next, .stops_after = 1};
    if (object->name[0] == '1') {
        sw_store_each(walk->b->store, "x", visit, &inner); /* deletes 1 and 2 */
    }
}

TEST(walks_within_walks)
{
    struct bench *b = bench_with_six();
    struct walk walk = {b, .react = walk_again};
    sw_store_each(b->store, NULL, visit, &walk);
    assert_string_equal(walk.seen, "x/1 x/3 y/4 x/5 x/6 ");
    bench_done(b);
}

/* ---- against a model ---- */

enum { KEYS = 12 };

struct model {
    char uid[KEYS][16]; /* "" : not there */
    unsigned version[KEYS];
};

static void replay(void *arg, const struct sw_change *change)
{
    struct model *told = arg;
    const struct sw_object *of = change->now ? change->now : change->old;
    size_t key = (size_t)(of->name[0] - 'a');
    const char *had = change->old ? change->old->uid : "";
    assert_string_equal(told->uid[key], had); /* every change begins where the last one ended */
    snprintf(told->uid[key], sizeof(told->uid[key]), "%s", change->now ? change->now->uid : "");
    told->version[key] =
        change->now ? (unsigned)strtoul(change->now->resource_version, NULL, 10) : 0;
}

static struct sw_object *random_object(struct bench *b, struct chance *chance, unsigned now)
{
    char name[2] = {(char)('a' + chance_below(chance, KEYS)), 0};
    unsigned version = now - SW_MIN(chance_below(chance, 12), now);
    char uid[16];
    char text[16];
    snprintf(uid, sizeof(uid), "%s%u", name, version / 40); /* a new object now and then */
    snprintf(text, sizeof(text), "%u", version);
    return object_new(b, "ns", name, uid, text, chance_below(chance, 2) ? "o" : "p");
}

static void check_model(struct bench *b, const struct model *told, uint64_t seed)
{
    size_t there = 0;
    for (size_t key = 0; key < KEYS; key++) {
        char name[2] = {(char)('a' + key), 0};
        const struct sw_object *object = sw_store_get(b->store, "ns", name);
        there += object != NULL;
        if (strcmp(object ? object->uid : "", told->uid[key]) != 0 ||
            (object && strtoul(object->resource_version, NULL, 10) != told->version[key])) {
            fail_msg("seed %" PRIu64 ": the store does not have what it told of %s", seed, name);
        }
    }
    assert_int_equal(sw_store_size(b->store), there);
}

/* What must never happen: a version of a name that is older than one that was told before, but for
 * a deletion, and where a list says so that is as new as that one; and what it tells must add up to
 * what it has. */
TEST(tells_all_that_leads_to_what_it_has)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct bench *b = bench_new();
        struct model told = {0};
        struct chance chance = {seed};
        unsigned highest[KEYS] = {0};
        bool is_replacing = false;
        unsigned begun = 0;
        sw_store_free(b->store);
        b->store = sw_store_new(b->loop, b->decoder, replay, &told);
        for (unsigned now = 1; now < 400; now++) {
            char text[16];
            unsigned listed = 0; /* the version of a list that was applied in this step */
            unsigned dice = chance_below(&chance, 20);
            char name[2] = {(char)('a' + chance_below(&chance, KEYS)), 0};
            snprintf(text, sizeof(text), "%u", now);
            if (dice < 12) {
                sw_store_put_take(b->store, random_object(b, &chance, now));
            } else if (dice < 14) {
                sw_store_delete(b->store, "ns", name, "", text);
            } else if (dice < 15 && !is_replacing) {
                sw_store_replace_begin(b->store);
                is_replacing = true;
                begun = now;
            } else if (dice < 18 && is_replacing) {
                sw_store_replace_add_take(b->store, random_object(b, &chance, now));
            } else if (dice == 18 && is_replacing) {
                listed = chance_below(&chance, 2) ? now : begun;
                snprintf(text, sizeof(text), "%u", listed);
                sw_store_replace_commit(b->store, text);
                is_replacing = false;
            } else if (dice == 19) {
                sw_loop_virtual_advance(b->loop, chance_below(&chance, 2));
            }
            check_model(b, &told, seed);
            for (size_t key = 0; key < KEYS; key++) {
                bool is_right = listed >= highest[key];
                if (told.uid[key][0] && told.version[key] < highest[key] && !is_right) {
                    fail_msg("seed %" PRIu64 ": went back from %u to %u", seed, highest[key],
                             told.version[key]);
                }
                highest[key] = told.uid[key][0] ? told.version[key] : 0;
            }
        }
        bench_done(b);
    }
}

TEST(holds_ten_thousand)
{
    enum { MANY = 10000 };
    struct bench *b = bench_new();
    char name[32];
    b->react = NULL;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        assert_true(put(b, name, name, "5"));
        sw_buf_clear(&b->said);
    }
    assert_int_equal(sw_store_size(b->store), MANY);
    for (int i = 0; i < MANY; i += 3) {
        snprintf(name, sizeof(name), "d%d", i);
        assert_true(sw_store_delete(b->store, "ns", name, name, "6"));
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "d%d", i);
        assert_int_equal(version_of(b, name) == NULL, i % 3 == 0);
    }
    sw_store_replace_begin(b->store);
    sw_store_replace_commit(b->store, "7");
    assert_int_equal(sw_store_size(b->store), 0);
    sw_loop_virtual_advance(b->loop, 0);
    assert_in_range(sw_store_bytes(b->store), 0, 100000); /* the table shrinks too */
    bench_done(b);
}

TEST(compares_versions)
{
    static const struct {
        const char *a, *b;
        int order; /* 2: unknown */
    } known[] = {
        {"1", "2", -1},
        {"2", "1", 1},
        {"5", "5", 0},
        {"9", "10", -1},
        {"100", "99", 1},
        {"0", "1", -1},
        {"", "1", 2},
        {"1", "", 2},
        {"a", "a", 2},
        {"01", "1", 2},
        {"1a", "1", 2},
        {"-1", "1", 2},
        {"18446744073709551616", "18446744073709551615", 1},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(known); i++) {
        bool is_known;
        int order = sw_version_compare(known[i].a, known[i].b, &is_known);
        assert_int_equal(is_known, known[i].order != 2);
        assert_int_equal((order > 0) - (order < 0), is_known ? known[i].order : 0);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("store", tells_what_changes),
        CASE("store", never_goes_back),
        CASE("store", tells_another_uid_as_deleted_and_added),
        CASE("store", does_not_bring_back_what_was_deleted),
        CASE("store", forgets_the_oldest_of_very_many_deletions),
        CASE("store", frees_after_the_loop_has_turned),
        CASE("store", frees_after_what_was_deferred_in_the_same_turn),
        CASE("store", frees_all_with_itself),
        CASE("store", replaces_in_one_step),
        CASE("store", keeps_what_the_list_could_not_know),
        CASE("store", goes_back_with_a_list_that_must_know),
        CASE("store", begins_anew_where_versions_have_gone_back),
        CASE("store", puts_and_deletes_while_a_list_is_read),
        CASE("store", lets_the_last_of_an_item_listed_twice_count),
        CASE("store", forgets_a_list_that_broke_off),
        CASE("store", takes_an_empty_list),
        CASE("store", tells_changes_made_meanwhile_in_order),
        CASE("store", lets_a_list_be_applied_while_it_tells),
        CASE("store", lists_by_namespace_and_owner),
        CASE("store", moves_an_object_whose_owner_changes),
        CASE("store", can_be_changed_by_a_walk),
        CASE("store", walks_within_walks),
        CASE("store", tells_all_that_leads_to_what_it_has),
        CASE("store", holds_ten_thousand),
        CASE("store", compares_versions),
    };
    return RUN(tests);
}
