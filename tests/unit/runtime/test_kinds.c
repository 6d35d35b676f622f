/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching and looking: one stream for all, and each subscriber gets what it asked for.
 */
#include <errno.h>
#include <slipway/watch.h>

#include "../test.h"
#include "base/buf.h"
#include "base/error.h"

#include "fixture.h"

/* Notes deltas as "+name", "~name", "-name", with "!" behind it if it is from a list. */
struct watcher {
    struct made_up made_up;
    struct sw_watch_options options;
    char seen[4096];
    unsigned listed;
};

static void on_delta(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    struct watcher *w = arg;
    static const char marks[] = {[SW_ADDED] = '+', [SW_MODIFIED] = '~', [SW_DELETED] = '-'};
    const struct sw_object *object = delta->now ? delta->now : delta->old;
    size_t len = strlen(w->seen);

    assert_true((delta->type == SW_ADDED) == !delta->old);
    assert_true((delta->type == SW_DELETED) == !delta->now);
    if (delta->now)
        assert_ptr_equal(
            sw_lookup(self, &sw_kind_deployment, delta->now->namespace_, delta->now->name),
            delta->now);
    snprintf(w->seen + len, sizeof(w->seen) - len, "%c%s%s ", marks[delta->type], object->name,
             delta->is_from_list ? "!" : "");
}

static void on_listed(struct sw_instance *self, void *arg)
{
    struct watcher *w = arg;

    assert_true(sw_is_synced(self, &sw_kind_deployment));
    w->listed++;
}

static int start(struct sw_instance *self, void *arg)
{
    struct watcher *w = arg;

    w->options.on_delta = on_delta;
    w->options.on_listed = on_listed;
    w->options.arg = w;
    assert_false(sw_is_synced(self, &sw_kind_deployment));
    assert_null(sw_lookup(self, &sw_kind_deployment, "n", "a"));
    return sw_watch(self, &sw_kind_deployment, &w->options);
}

static void add(struct fixture *f, const struct sw_module *module, struct watcher *w)
{
    w->made_up = (struct made_up){.start = start, .arg = w};
    fixture_add(f, module, &w->made_up);
}

static void expect(struct watcher *w, const char *seen)
{
    assert_string_equal(w->seen, seen);
    w->seen[0] = '\0';
}

static void send(struct fixture *f, struct fake_request *watch, const char *type,
                 const char *object)
{
    fake_body(watch, event(type, object));
    fixture_turn(f);
}

TEST(opens_one_stream_for_all_who_watch_a_kind)
{
    struct fixture f;
    struct watcher one = {0}, two = {0};

    fixture_init(&f, NULL);
    add(&f, &module_one, &one);
    add(&f, &module_two, &two);
    fixture_open(&f);
    assert_int_equal(fake_open_count(f.transport), 1);
    struct fake_request *watch = serve_deployments(&f, "10", deployment("n", "a", "u1", "5", "{}"));
    assert_int_equal(fake_open_count(f.transport), 1);
    expect(&one, "+a! ");
    expect(&two, "+a! ");
    assert_int_equal(one.listed, 1);
    send(&f, watch, "MODIFIED", deployment("n", "a", "u1", "11", "{}"));
    send(&f, watch, "ADDED", deployment("n", "b", "u2", "12", "{}"));
    send(&f, watch, "DELETED", deployment("n", "a", "u1", "13", "{}"));
    expect(&one, "~a +b -a ");
    expect(&two, "~a +b -a ");
    fixture_done(&f);
}

TEST(gives_each_subscriber_what_it_selects)
{
    struct fixture f;
    struct watcher all = {0};
    struct watcher red = {.options = {.label_selector = "colour=red"}};
    struct watcher here = {.options = {.namespace_ = "here"}};

    fixture_init(&f, NULL);
    add(&f, &module_one, &all);
    add(&f, &module_two, &red);
    add(&f, &module_three, &here);
    fixture_open(&f);
    struct fake_request *watch =
        serve_deployments(&f, "10", deployment("here", "a", "u1", "5", "{\"colour\":\"blue\"}"));
    expect(&all, "+a! ");
    expect(&red, "");
    expect(&here, "+a! ");
    send(&f, watch, "MODIFIED", deployment("here", "a", "u1", "11", "{\"colour\":\"red\"}"));
    expect(&red, "+a ");
    send(&f, watch, "MODIFIED", deployment("here", "a", "u1", "12", "{\"colour\":\"red\"}"));
    expect(&red, "~a ");
    send(&f, watch, "MODIFIED", deployment("here", "a", "u1", "13", "{}"));
    expect(&red, "-a ");
    send(&f, watch, "ADDED", deployment("there", "b", "u2", "14", "{\"colour\":\"red\"}"));
    expect(&red, "+b ");
    expect(&here, "~a ~a ~a ");
    expect(&all, "~a ~a ~a +b ");
    fixture_done(&f);
}

TEST(asks_the_server_for_no_more_than_all_agree_on)
{
    struct fixture f;
    struct watcher one = {.options = {.label_selector = "a=b,c in (e,d)", .namespace_ = "here"}};
    struct watcher two = {.options = {.label_selector = "c in (d,e),a=b"}};

    fixture_init(&f, NULL);
    add(&f, &module_one, &one);
    add(&f, &module_two, &two);
    fixture_open(&f);
    struct fake_request *list = fake_the(f.transport, "/apis/apps/v1/deployments?limit=");
    assert_string_equal(fake_query(list, "labelSelector"), "a=b,c in (d,e)");
    fixture_done(&f);
}

TEST(watches_the_one_namespace_that_it_is_limited_to)
{
    struct fixture f;
    struct sw_core_options options = {.username = "me", .namespace_ = "here"};
    struct watcher one = {0};
    struct watcher wrong = {.options = {.namespace_ = "there"}};
    struct made_up made_up = {.start = start, .arg = &wrong};
    struct sw_error error = {0};

    fixture_init(&f, &options);
    add(&f, &module_one, &one);
    assert_int_equal(sw_core_add(f.core, &module_two, &made_up, &error), -EINVAL);
    assert_string_equal(error.text,
                        "module two does not start: it watches deployments in namespace there, but "
                        "slipway is limited to namespace here");
    fixture_open(&f);
    assert_non_null(fake_the(f.transport, "/apis/apps/v1/namespaces/here/deployments?limit="));
    fixture_done(&f);
}

TEST(refuses_a_selector_that_is_none)
{
    struct fixture f;
    struct watcher wrong = {.options = {.label_selector = "a in"}};
    struct made_up made_up = {.start = start, .arg = &wrong};
    struct sw_error error = {0};

    fixture_init(&f, NULL);
    assert_true(sw_core_add(f.core, &module_one, &made_up, &error) < 0);
    assert_non_null(strstr(error.text, "label selector \"a in\" of deployments: "));
    fixture_done(&f);
}

static bool note(void *arg, const struct sw_object *object)
{
    strcat(arg, object->name);
    return strlen(arg) < 2;
}

TEST(finds_objects_in_the_store)
{
    struct fixture f;
    struct watcher w = {0};
    char names[64] = "";
    struct sw_selector *red;
    char items[4096];

    fixture_init(&f, NULL);
    add(&f, &module_one, &w);
    fixture_open(&f);
    snprintf(items, sizeof(items), "%s,%s,%s",
             deployment("n", "a", "u1", "5", "{\"colour\":\"red\"}"),
             deployment("m", "b", "u2", "6", "{\"colour\":\"red\"}"),
             deployment("n", "c", "u3", "7", "{}"));
    serve_deployments(&f, "10", items);
    struct sw_instance *self = w.made_up.self;
    assert_non_null(sw_lookup(self, &sw_kind_deployment, "n", "a"));
    assert_null(sw_lookup(self, &sw_kind_deployment, "m", "a"));
    assert_int_equal(sw_selector_parse_text("colour=red", &red, (char[256]){0}, 256), 0);
    sw_each(self, &sw_kind_deployment, "n", red, note, names);
    assert_string_equal(names, "a");
    sw_each(self, &sw_kind_deployment, NULL, red, note, names + 1);
    assert_int_equal(strlen(names), 3);
    names[0] = '\0';
    sw_each(self, &sw_kind_deployment, NULL, NULL, note, names);
    assert_int_equal(strlen(names), 2); /* the visitor said stop */
    sw_selector_free(red);
    fixture_done(&f);
}

TEST(tells_when_a_list_that_was_asked_for_has_come)
{
    struct fixture f;
    struct watcher w = {0};

    fixture_init(&f, NULL);
    add(&f, &module_one, &w);
    fixture_open(&f);
    serve_deployments(&f, "10", deployment("n", "a", "u1", "5", "{}"));
    expect(&w, "+a! ");
    sw_relist(w.made_up.self, &sw_kind_deployment);
    fixture_turn(&f);
    serve_deployments(&f, "20", deployment("n", "b", "u2", "15", "{}"));
    assert_int_equal(w.listed, 2);
    assert_true(strcmp(w.seen, "-a! +b! ") == 0 || strcmp(w.seen, "+b! -a! ") == 0);
    fixture_done(&f);
}

TEST(is_ready_without_a_kind_that_is_optional_and_missing)
{
    struct fixture f;
    struct watcher needed = {0};

    fixture_init(&f, NULL);
    needed.options.is_optional = true;
    add(&f, &module_one, &needed);
    fixture_open(&f);
    assert_true(sw_core_is_ready(f.core));
    fake_answer(fake_the(f.transport, "/deployments?limit="), 404, NULL, "404 page not found");
    assert_true(sw_core_is_ready(f.core));
    assert_true(sw_is_leading(needed.made_up.self));
    fixture_done(&f);
}

TEST(says_what_is_not_listed_yet)
{
    struct fixture f;
    struct watcher w = {0};
    struct sw_buf text;

    fixture_init(&f, NULL);
    add(&f, &module_one, &w);
    fixture_open(&f);
    sw_buf_init(&text, 100);
    sw_kinds_unlisted_text(&f.core->kinds, &text);
    assert_string_equal(text.bytes, "deployments.apps");
    assert_false(sw_core_is_ready(f.core));
    serve_deployments(&f, "10", "");
    sw_buf_clear(&text);
    sw_kinds_unlisted_text(&f.core->kinds, &text);
    assert_string_equal(text.bytes, "");
    assert_true(sw_core_is_ready(f.core));
    sw_buf_done(&text);
    fixture_done(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("watch", opens_one_stream_for_all_who_watch_a_kind),
        CASE("watch", gives_each_subscriber_what_it_selects),
        CASE("watch", asks_the_server_for_no_more_than_all_agree_on),
        CASE("watch", watches_the_one_namespace_that_it_is_limited_to),
        CASE("watch", refuses_a_selector_that_is_none),
        CASE("watch", finds_objects_in_the_store),
        CASE("watch", tells_when_a_list_that_was_asked_for_has_come),
        CASE("watch", is_ready_without_a_kind_that_is_optional_and_missing),
        CASE("watch", says_what_is_not_listed_yet),
    };
    return RUN(tests);
}
