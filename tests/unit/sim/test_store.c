/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the simulated cluster: order, versions, the window, dependents, watchers. */
#include "test.h"

#include <errno.h>
#include <jansson.h>

#include "base/random.h"
#include "base/util.h"
#include "kind.h"
#include "store.h"

static const struct sw_sim_kind pods = {
    .group = "", .version = "v1", .kind = "Pod", .plural = "pods", .is_namespaced = true};
static const struct sw_sim_kind nodes = {
    .group = "", .version = "v1", .kind = "Node", .plural = "nodes"};

static const struct sw_sim_object *put(struct sw_sim_store *store, const struct sw_sim_kind *kind,
                                       const char *namespace_, const char *name, const char *owner)
{
    json_t *json = json_pack("{s:{s:s,s:s}}", "metadata", "name", name, "uid", name);
    json_t *metadata = json_object_get(json, "metadata");
    if (kind->is_namespaced) {
        json_object_set_new(metadata, "namespace", json_string(namespace_));
    }
    if (owner) {
        json_object_set_new(metadata, "ownerReferences", json_pack("[{s:s}]", "uid", owner));
    }
    return sw_sim_store_put(store, kind, json);
}

struct names {
    char text[256];
    int stop_after;
};

static int add_name(void *arg, const struct sw_sim_object *object)
{
    struct names *names = arg;
    size_t len = strlen(names->text);
    snprintf(names->text + len, sizeof(names->text) - len, "%s%s/%s", len ? " " : "",
             object->namespace_, object->name);
    return names->stop_after && --names->stop_after == 0 ? 7 : 0;
}

static void check_names(const struct sw_sim_store *store, const struct sw_sim_kind *kind,
                        const char *namespace_, const char *after, const char *want)
{
    struct names names = {0};
    assert_int_equal(sw_sim_store_each(store, kind, namespace_, after, add_name, &names), 0);
    assert_string_equal(names.text, want);
}

TEST(lists_in_the_order_of_keys)
{
    struct sw_sim_store *store = sw_sim_store_new(100, 8);
    put(store, &pods, "b", "x", NULL);
    put(store, &pods, "a", "y", NULL);
    put(store, &pods, "a-b", "z", NULL);
    put(store, &pods, "a", "x", NULL);
    put(store, &nodes, NULL, "n", NULL);
    assert_int_equal(sw_sim_store_version(store), 105);
    check_names(store, &pods, NULL, NULL, "a-b/z a/x a/y b/x");
    check_names(store, &pods, "a", NULL, "a/x a/y");
    check_names(store, &pods, "a", "a/x", "a/y");
    check_names(store, &pods, "a", "a/xx", "a/y");
    check_names(store, &pods, "b", "a/x", "b/x");
    check_names(store, &pods, NULL, "a/y", "b/x");
    check_names(store, &pods, NULL, "b/x", "");
    check_names(store, &pods, "c", NULL, "");
    check_names(store, &nodes, NULL, NULL, "/n");
    struct names names = {.stop_after = 2};
    assert_int_equal(sw_sim_store_each(store, &pods, NULL, NULL, add_name, &names), 7);
    assert_string_equal(names.text, "a-b/z a/x");
    assert_null(sw_sim_store_get(store, &pods, "a", "z"));
    assert_string_equal(sw_sim_store_get(store, &pods, "a", "y")->key, "a/y");
    assert_null(sw_sim_store_free(store));
}

/* Against an array in which a member is there or not. */
TEST(agrees_with_an_array_over_many_changes)
{
    enum { NAMES = 2000, STEPS = 20000 };
    static bool is_there[NAMES];
    struct sw_sim_store *store = sw_sim_store_new(1, 10);
    struct sw_rng rng;
    sw_rng_seed(&rng, 42);
    size_t count = 0;
    for (int step = 0; step < STEPS; step++) {
        unsigned number = (unsigned)sw_rng_between(&rng, 0, NAMES - 1);
        char name[16];
        snprintf(name, sizeof(name), "p%05u", number);
        const struct sw_sim_object *object = sw_sim_store_get(store, &pods, "a", name);
        assert_int_equal(object != NULL, is_there[number]);
        if (object && sw_rng_between(&rng, 0, 1)) {
            sw_sim_store_remove(store, object);
            is_there[number] = false;
            count--;
        } else {
            count += !is_there[number];
            is_there[number] = true;
            object = put(store, &pods, "a", name, NULL);
            assert_int_equal(object->version, sw_sim_store_version(store));
        }
        assert_int_equal(sw_sim_store_count(store, &pods), count);
    }
    char after[16] = "a/";
    for (unsigned number = 0; number < NAMES; number++) {
        if (is_there[number]) {
            char want[16];
            snprintf(want, sizeof(want), "a/p%05u", number);
            struct names next = {.stop_after = 1};
            assert_int_equal(sw_sim_store_each(store, &pods, "a", after, add_name, &next), 7);
            assert_string_equal(next.text, want);
            memcpy(after, want, sizeof(after));
        }
    }
    sw_sim_store_free(store);
}

struct seen {
    struct sw_sim_store_watcher watcher;
    struct sw_sim_store *store;
    char text[512];
    bool answers;
};

static void see(struct seen *seen, const struct sw_sim_change *change)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "DELETED"};
    size_t len = strlen(seen->text);
    snprintf(seen->text + len, sizeof(seen->text) - len, "%s%s %s %d%s", len ? ", " : "",
             types[change->type], change->object->name, (int)change->version,
             change->before ? " before" : "");
}

static void on_change(struct sw_sim_store_watcher *watcher, const struct sw_sim_change *change)
{
    struct seen *seen = container_of(watcher, struct seen, watcher);
    see(seen, change);
    if (seen->answers && change->type == SW_SIM_ADDED) {
        put(seen->store, &nodes, NULL, change->object->name, NULL);
    }
}

TEST(tells_watchers_each_change_in_order)
{
    struct sw_sim_store *store = sw_sim_store_new(0, 8);
    struct seen first = {.watcher.on_change = on_change, .store = store, .answers = true};
    struct seen second = {.watcher.on_change = on_change, .store = store};
    sw_sim_store_watch(store, &first.watcher);
    sw_sim_store_watch(store, &second.watcher);
    put(store, &nodes, NULL, "n", NULL);
    sw_sim_store_remove(store, sw_sim_store_get(store, &nodes, NULL, "n"));
    const char *want = "ADDED n 1, MODIFIED n 2 before, DELETED n 3 before";
    assert_string_equal(first.text, want);
    assert_string_equal(second.text, want);
    sw_sim_store_unwatch(store, &first.watcher);
    put(store, &pods, "a", "p", NULL);
    assert_string_equal(first.text, want);
    assert_string_equal(second.text + strlen(want), ", ADDED p 4");
    sw_sim_store_free(store);
}

static int see_past(void *arg, const struct sw_sim_change *change)
{
    see(arg, change);
    return 0;
}

TEST(knows_the_latest_changes_and_forgets_the_others)
{
    struct sw_sim_store *store = sw_sim_store_new(10, 3);
    struct seen seen = {0};
    assert_int_equal(sw_sim_store_changes(store, &pods, 9, see_past, &seen), -ESTALE);
    put(store, &pods, "a", "p", NULL);   /* 11 */
    put(store, &nodes, NULL, "n", NULL); /* 12 */
    put(store, &pods, "a", "p", NULL);   /* 13 */
    assert_int_equal(sw_sim_store_changes(store, &pods, 10, see_past, &seen), 0);
    assert_string_equal(seen.text, "ADDED p 11, MODIFIED p 13 before");
    sw_sim_store_remove(store, sw_sim_store_get(store, &pods, "a", "p"));
    assert_int_equal(sw_sim_store_changes(store, &pods, 10, see_past, &seen), -ESTALE);
    assert_int_equal(sw_sim_store_floor(store), 11);
    seen.text[0] = 0;
    assert_int_equal(sw_sim_store_changes(store, &pods, 11, see_past, &seen), 0);
    assert_string_equal(seen.text, "MODIFIED p 13 before, DELETED p 14 before");
    sw_sim_store_compact(store, 13);
    assert_int_equal(sw_sim_store_changes(store, &pods, 12, see_past, &seen), -ESTALE);
    seen.text[0] = 0;
    assert_int_equal(sw_sim_store_changes(store, &pods, 13, see_past, &seen), 0);
    assert_string_equal(seen.text, "DELETED p 14 before");
    sw_sim_store_free(store);
}

TEST(an_object_stays_as_it_was)
{
    struct sw_sim_store *store = sw_sim_store_new(0, 1);
    const struct sw_sim_object *object = sw_sim_object_ref(put(store, &pods, "a", "p", NULL));
    put(store, &pods, "a", "p", NULL);
    sw_sim_store_remove(store, sw_sim_store_get(store, &pods, "a", "p"));
    sw_sim_store_free(store);
    size_t len = 0;
    const char *want = "{\"metadata\":{\"name\":\"p\",\"uid\":\"p\",\"namespace\":\"a\","
                       "\"resourceVersion\":\"1\"}}";
    assert_string_equal(sw_sim_object_text(object, &len), want);
    assert_int_equal(len, strlen(want));
    sw_sim_object_unref(object);
}

TEST(copies_what_another_holds_too)
{
    struct sw_sim_store *store = sw_sim_store_new(0, 8);
    json_t *json = json_pack("{s:{s:s}}", "metadata", "name", "n");
    const struct sw_sim_object *first = sw_sim_store_put(store, &nodes, json_incref(json));
    sw_sim_object_ref(first);
    const struct sw_sim_object *second = sw_sim_store_put(store, &nodes, json);
    assert_string_equal(sw_sim_object_text(first, NULL),
                        "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1\"}}");
    assert_string_equal(sw_sim_object_text(second, NULL),
                        "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"2\"}}");
    sw_sim_object_unref(first);
    sw_sim_store_free(store);
}

static void check_owned(const struct sw_sim_store *store, const char *uid, const char *want)
{
    struct names names = {0};
    assert_int_equal(sw_sim_store_each_owned(store, uid, add_name, &names), 0);
    assert_string_equal(names.text, want);
}

TEST(finds_dependents_by_the_uid_of_their_owner)
{
    struct sw_sim_store *store = sw_sim_store_new(0, 8);
    put(store, &pods, "a", "p", "one");
    put(store, &pods, "a", "q", "one");
    put(store, &nodes, NULL, "n", "two");
    check_owned(store, "one", "a/p a/q");
    check_owned(store, "two", "/n");
    put(store, &pods, "a", "p", "one");
    check_owned(store, "one", "a/p a/q");
    put(store, &pods, "a", "p", "two");
    check_owned(store, "one", "a/q");
    check_owned(store, "two", "/n a/p");
    put(store, &pods, "a", "q", NULL);
    check_owned(store, "one", "");
    sw_sim_store_remove(store, sw_sim_store_get(store, &nodes, NULL, "n"));
    check_owned(store, "two", "a/p");
    sw_sim_store_free(store);
}

/* ---- limits ---- */

static void count_call(void *arg)
{
    (*(int *)arg)++;
}

TEST(drops_documents_that_nobody_used_and_makes_them_again)
{
    struct sw_sim_store *store = sw_sim_store_new(0, 8);
    sw_sim_store_limit(store, &(struct sw_sim_limits){.documents = 2, .window_bytes = SIZE_MAX});
    int calls = 0;
    sw_sim_store_on_full(store, count_call, &calls);
    const json_t *node = sw_sim_object_json(put(store, &nodes, NULL, "n", NULL));
    const struct sw_sim_object *a = put(store, &pods, "a", "p", "one");
    put(store, &pods, "a", "q", NULL);
    assert_int_equal(calls, 0);
    put(store, &pods, "a", "r", NULL);
    put(store, &pods, "a", "s", NULL);
    assert_int_equal(calls, 1);
    json_t *held = json_incref((json_t *)(uintptr_t)sw_sim_object_json(a));
    SW_AUTO(char, sw_free) text = sw_strdup(sw_sim_object_text(a, NULL));
    sw_sim_store_trim(store);
    json_t *owner = sw_sim_object_at(a, "metadata.ownerReferences");
    assert_int_equal(json_array_size(owner), 1);
    json_decref(owner);
    assert_null(sw_sim_object_at(a, "metadata.labels"));
    json_t *copy = sw_sim_object_share(a);
    assert_true(json_equal(copy, held));
    json_decref(copy);
    const json_t *again = sw_sim_object_json(a);
    assert_ptr_not_equal(again, held);
    assert_true(json_equal(again, held));
    assert_ptr_equal(again, sw_sim_object_json(a));
    assert_string_equal(sw_sim_object_text(a, NULL), text);
    assert_string_equal(a->key, "a/p");
    /* Those of Nodes stay. */
    assert_ptr_equal(sw_sim_object_json(sw_sim_store_get(store, &nodes, NULL, "n")), node);
    json_decref(held);
    sw_sim_store_free(store);
}

TEST(keeps_the_document_that_is_used_again_and_again)
{
    struct sw_sim_store *store = sw_sim_store_new(0, 8);
    sw_sim_store_limit(store, &(struct sw_sim_limits){.documents = 16, .window_bytes = SIZE_MAX});
    const struct sw_sim_object *used = put(store, &pods, "a", "used", NULL);
    for (int i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%d", i);
        put(store, &pods, "a", name, NULL);
        put(store, &pods, "b", name, NULL);
        sw_sim_store_trim(store);
    }
    const json_t *before = sw_sim_object_json(used);
    for (int i = 0; i < 50; i++) {
        put(store, &pods, "c", "p", NULL);
        put(store, &pods, "d", "p", NULL);
        assert_ptr_equal(sw_sim_object_json(used), before);
        sw_sim_store_trim(store);
    }
    sw_sim_store_free(store);
}

TEST(the_window_ends_where_its_bytes_do)
{
    struct sw_sim_store *store = sw_sim_store_new(0, 1000);
    sw_sim_store_limit(store, &(struct sw_sim_limits){.documents = 2, .window_bytes = 1000});
    for (int i = 0; i < 100; i++) {
        put(store, &pods, "a", "p", NULL);
    }
    size_t len = 0;
    sw_sim_object_text(sw_sim_store_get(store, &pods, "a", "p"), &len);
    uint64_t kept = sw_sim_store_version(store) - sw_sim_store_floor(store);
    assert_int_equal(kept, 1000 / (2 * len));
    assert_int_equal(sw_sim_store_changes(store, &pods, sw_sim_store_floor(store) - 1, NULL, NULL),
                     -ESTALE);
    sw_sim_store_free(store);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("store", lists_in_the_order_of_keys),
        CASE("store", agrees_with_an_array_over_many_changes),
        CASE("store", tells_watchers_each_change_in_order),
        CASE("store", knows_the_latest_changes_and_forgets_the_others),
        CASE("store", an_object_stays_as_it_was),
        CASE("store", copies_what_another_holds_too),
        CASE("store", finds_dependents_by_the_uid_of_their_owner),
        CASE("store", drops_documents_that_nobody_used_and_makes_them_again),
        CASE("store", keeps_the_document_that_is_used_again_and_again),
        CASE("store", the_window_ends_where_its_bytes_do),
    };
    return RUN(tests);
}
