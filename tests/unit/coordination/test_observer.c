/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom an observer sees rolling, by what Deployments say of themselves.
 */
#include "fixture.h"

#include "observer.h"

struct view {
    struct fixture *f;
    struct coord_observer *observer;
    struct subject before[DEPLOYMENTS]; /* as last seen */
    bool was_seen[DEPLOYMENTS];
};

static struct view view_new(void)
{
    return (struct view){.f = fixture_new(), .observer = coord_observer_new()};
}

static void view_free(struct view *v)
{
    coord_observer_free(v->observer);
    fixture_free(v->f);
}

/* Shows the Deployment as it is now. */
static bool show(struct view *v, size_t i)
{
    const struct sw_deployment *old = v->was_seen[i] ? &v->before[i].d : NULL;
    bool matters = coord_observer_see(v->observer, old, &v->f->subjects[i].d);

    v->before[i] = v->f->subjects[i];
    v->before[i].d.meta.annotations.at = v->before[i].annotations;
    v->before[i].d.conditions.at = v->before[i].conditions;
    v->was_seen[i] = true;
    return matters;
}

static const struct sw_object *find(void *arg, const char *name)
{
    struct view *v = arg;

    for (size_t i = 0; i < DEPLOYMENTS; i++)
        if (v->was_seen[i] && strcmp(names[i], name) == 0)
            return &v->f->subjects[i].d.meta;
    return NULL;
}

static uint32_t rolling(struct view *v)
{
    return coord_observer_count(v->observer, v->f->selector, find, v);
}

TEST(those_at_rest_held_or_complete_do_not_roll)
{
    struct view v = view_new();

    rest(v.f, 0);
    wait_(v.f, 1);
    roll(v.f, 2);
    finish(v.f, 2);
    for (size_t i = 0; i < 3; i++)
        assert_false(show(&v, i));
    assert_int_equal(rolling(&v), 0);
    view_free(&v);
}

TEST(two_that_roll_are_two_whoever_let_them)
{
    struct view v = view_new();

    roll(v.f, 0);
    roll(v.f, 1);
    strip(&v.f->subjects[1], SW_RELEASED_BY);
    assert_true(show(&v, 0));
    assert_int_equal(rolling(&v), 1);
    assert_true(show(&v, 1));
    assert_int_equal(rolling(&v), 2);
    finish(v.f, 0);
    assert_true(show(&v, 0));
    assert_int_equal(rolling(&v), 1);
    assert_true(coord_observer_see(v.observer, &v.f->subjects[1].d, NULL));
    assert_int_equal(rolling(&v), 0);
    view_free(&v);
}

TEST(one_that_is_not_observed_still_does_what_it_did)
{
    struct view v = view_new();

    roll(v.f, 0);
    v.f->subjects[0].d.meta.generation++;
    assert_false(show(&v, 0)); /* first sight, and nothing is known */
    v.f->subjects[0].d.observed_generation++;
    assert_true(show(&v, 0));
    v.f->subjects[0].d.meta.generation++;
    v.f->subjects[0].d.is_paused = true;
    assert_true(show(&v, 0));
    assert_int_equal(rolling(&v), 1);
    v.f->subjects[0].d.observed_generation++;
    assert_true(show(&v, 0)); /* it did */
    assert_int_equal(rolling(&v), 0);
    assert_false(show(&v, 0));
    view_free(&v);
}

TEST(the_tail_of_a_rollout_and_the_gap_of_recreate_count)
{
    struct view v = view_new();

    roll(v.f, 0); /* all updated, one not yet available */
    v.f->subjects[0].d.updated_replicas = 2;
    v.f->subjects[0].d.available_replicas = 1;
    show(&v, 0);
    roll(v.f, 1);
    v.f->subjects[1].d.strategy = "Recreate";
    v.f->subjects[1].d.updated_replicas = v.f->subjects[1].d.status_replicas = 0;
    v.f->subjects[1].d.available_replicas = 0;
    show(&v, 1);
    assert_int_equal(rolling(&v), 2);
    view_free(&v);
}

TEST(a_lost_pod_and_a_change_of_size_are_no_rollout)
{
    struct view v = view_new();
    struct sw_deployment *d = &v.f->subjects[0].d;

    roll(v.f, 0);
    finish(v.f, 0);
    show(&v, 0);
    d->available_replicas = 1;
    assert_false(show(&v, 0));
    d->available_replicas = 2;
    show(&v, 0);
    d->replicas = 0; /* scaled to nothing, and up again: it reports progress */
    d->status_replicas = d->updated_replicas = d->available_replicas = 0;
    d->meta.generation = d->observed_generation = 7;
    show(&v, 0);
    d->replicas = 3;
    d->meta.generation = 8;
    assert_false(show(&v, 0));
    d->observed_generation = 8;
    d->status_replicas = d->updated_replicas = 3;
    set_progressing(&v.f->subjects[0], "True", "ReplicaSetUpdated", 0);
    assert_false(show(&v, 0));
    assert_int_equal(rolling(&v), 0);
    annotate(&v.f->subjects[0], COORD_REVISION, "5"); /* but a new template is */
    assert_true(show(&v, 0));
    assert_int_equal(rolling(&v), 1);
    view_free(&v);
}

TEST(another_of_the_same_name_begins_anew)
{
    struct view v = view_new();

    roll(v.f, 0);
    show(&v, 0);
    rest(v.f, 0);
    v.f->subjects[0].d.meta.uid = "another";
    assert_true(show(&v, 0));
    assert_int_equal(rolling(&v), 0);
    view_free(&v);
}

TEST(who_is_ignored_being_deleted_or_not_selected_does_not_count)
{
    struct view v = view_new();

    for (size_t i = 0; i < 3; i++) {
        roll(v.f, i);
        show(&v, i);
    }
    assert_int_equal(rolling(&v), 3);
    annotate(&v.f->subjects[0], SW_IGNORE, "true");
    assert_true(show(&v, 0));
    assert_int_equal(rolling(&v), 2);
    v.f->subjects[1].d.meta.deleted_us = 1;
    show(&v, 1);
    assert_int_equal(rolling(&v), 1);
    with_other(v.f, "tier=1");
    assert_int_equal(coord_observer_count(v.observer, v.f->other_selector, find, &v), 0);
    label(v.f, 2, "tier");
    assert_int_equal(coord_observer_count(v.observer, v.f->other_selector, find, &v), 1);
    assert_int_equal(coord_observer_count(v.observer, NULL, find, &v), 0);
    view_free(&v);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("observer", those_at_rest_held_or_complete_do_not_roll),
        CASE("observer", two_that_roll_are_two_whoever_let_them),
        CASE("observer", one_that_is_not_observed_still_does_what_it_did),
        CASE("observer", the_tail_of_a_rollout_and_the_gap_of_recreate_count),
        CASE("observer", a_lost_pod_and_a_change_of_size_are_no_rollout),
        CASE("observer", another_of_the_same_name_begins_anew),
        CASE("observer", who_is_ignored_being_deleted_or_not_selected_does_not_count),
    };

    return RUN(tests);
}
