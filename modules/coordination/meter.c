/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is shown per coordination is found out when somebody asks: between two questions it costs
 * nothing. Only an overlap is counted as it happens.
 */
#include "meter.h"

#include <string.h>

#include <slipway/memory.h>
#include <slipway/time.h>
#include <slipway/watch.h>

#include "shell.h"

#define OTHER "(other)" /* no name of an object */

/* Why a coordination is Degraded; what is none of them was not written by us. */
static const char *const reasons[COORD_REASONS] = {"Error",
                                                   "TakeOverFailed",
                                                   "InvalidSelector",
                                                   "RolloutFailed",
                                                   "PeerUnavailable",
                                                   "PausedByUser",
                                                   OTHER};

struct coord_series {
    struct sw_metric *shown[COORD_SHOWN];
    struct sw_metric *counted[COORD_COUNTED];
    int reason; /* index of the series of `degraded` that is there; -1: none */
};

/* ---- series of one coordination ---- */

static const char *const *values_of(const char *values[4], const char *namespace_, const char *name,
                                    const char *reason)
{
    values[0] = namespace_;
    values[1] = name;
    values[2] = reason;
    values[3] = NULL;
    return values;
}

static struct coord_series *series_of(struct coord_meter *meter, const struct space *space,
                                      struct space_group *group)
{
    const char *values[4];

    if (group->series || meter->own >= meter->most)
        return group->series;
    values_of(values, space->namespace_, group->name, NULL);
    struct coord_series *series = SW_NEW(struct coord_series);
    for (int i = 0; i < COORD_SHOWN; i++)
        series->shown[i] = sw_series(meter->shown[i], values);
    for (int i = 0; i < COORD_COUNTED; i++)
        series->counted[i] = sw_series(meter->counted[i], values);
    series->reason = -1;
    group->series = series;
    meter->own++;
    return series;
}

static void drop_series(struct coord_meter *meter, const struct space *space,
                        struct space_group *group)
{
    struct coord_series *series = group->series;
    const char *values[4];

    if (!series)
        return;
    values_of(values, space->namespace_, group->name, NULL);
    for (int i = 0; i < COORD_SHOWN; i++)
        sw_series_remove(meter->shown[i], values);
    for (int i = 0; i < COORD_COUNTED; i++)
        sw_series_remove(meter->counted[i], values);
    if (series->reason >= 0)
        sw_series_remove(meter->degraded, values_of(values, space->namespace_, group->name,
                                                    reasons[series->reason]));
    group->series = sw_free(series);
    meter->own--;
}

static void count(struct coord_meter *meter, const struct space *space, struct space_group *group,
                  enum coord_counted what, double by)
{
    struct coord_series *series = series_of(meter, space, group);
    const char *values[4];

    if (series)
        sw_count(series->counted[what], by);
    else
        sw_count(sw_series(meter->counted[what], values_of(values, "", OTHER, NULL)), by);
}

/* ---- what is shown ---- */

struct sight_of_status {
    double shown[COORD_SHOWN];
    int reason; /* -1: not Degraded */
};

static double seconds_since(int64_t since_us, int64_t now_us)
{
    return since_us > 0 && since_us < now_us ? (double)(now_us - since_us) / 1e6 : 0;
}

static int reason_of(const struct coordination *c)
{
    const struct sw_condition *degraded = sw_condition_get(&c->conditions, "Degraded");
    int i = 0;

    if (!degraded || strcmp(degraded->status, "True") != 0)
        return -1;
    while (i < COORD_REASONS - 1 && strcmp(reasons[i], degraded->reason) != 0)
        i++;
    return i;
}

static void read_status(const struct coordination *c, int64_t now_us, struct sight_of_status *to)
{
    const struct coord_entry *entries = c->states.at;
    double *shown = to->shown;

    *to = (struct sight_of_status){.reason = reason_of(c)};
    shown[COORD_ACTIVE] = (double)c->active_deployments.count;
    shown[COORD_WAITING] = (double)c->pending;
    shown[COORD_SUSPENDED] = c->is_suspended;
    for (uint32_t i = 0; i < c->states.count; i++) {
        bool is_active = entries[i].position == 0;
        int64_t since_us = is_active ? entries[i].started_us : entries[i].pending_since_us;
        double *longest = &shown[is_active ? COORD_TURN : COORD_OLDEST_WAIT];
        double seconds = seconds_since(since_us, now_us);
        if (entries[i].position >= 0 && seconds > *longest)
            *longest = seconds;
    }
}

struct rest {
    struct coord_meter *meter;
    int64_t now_us;
    double shown[COORD_SHOWN];
    uint32_t reasons[COORD_REASONS];
    uint32_t count;
};

static void show_own(struct coord_meter *meter, const struct space *space,
                     const struct space_group *group, const struct sight_of_status *sight)
{
    struct coord_series *series = group->series;
    const char *values[4];

    for (int i = 0; i < COORD_SHOWN; i++)
        sw_measure(series->shown[i], sight->shown[i]);
    if (series->reason != sight->reason && series->reason >= 0)
        sw_series_remove(meter->degraded, values_of(values, space->namespace_, group->name,
                                                    reasons[series->reason]));
    series->reason = sight->reason;
    if (series->reason >= 0)
        sw_measure(sw_series(meter->degraded, values_of(values, space->namespace_, group->name,
                                                        reasons[series->reason])),
                   1);
}

static void add_to_rest(struct rest *rest, const struct sight_of_status *sight)
{
    rest->count++;
    for (int i = 0; i < COORD_SHOWN; i++) {
        bool is_longest = i == COORD_OLDEST_WAIT || i == COORD_TURN;
        if (!is_longest)
            rest->shown[i] += sight->shown[i];
        else if (sight->shown[i] > rest->shown[i])
            rest->shown[i] = sight->shown[i];
    }
    if (sight->reason >= 0)
        rest->reasons[sight->reason]++;
}

static void show_space(void *arg, struct space *space)
{
    struct rest *rest = arg;
    struct coord_meter *meter = rest->meter;

    for (uint32_t i = 0; i < space->group_count; i++) {
        struct space_group *group = &space->groups[i];
        struct sight_of_status sight = {.reason = -1};
        const struct sw_object *object =
            sw_lookup(meter->self, &coord_kind, space->namespace_, group->name);
        if (object)
            read_status((const struct coordination *)(const void *)object, rest->now_us, &sight);
        if (series_of(meter, space, group))
            show_own(meter, space, group, &sight);
        else
            add_to_rest(rest, &sight);
    }
}

static void show_rest(struct coord_meter *meter, const struct rest *rest)
{
    const char *values[4];

    sw_measure(meter->summed, rest->count);
    for (int i = 0; i < COORD_SHOWN; i++) {
        values_of(values, "", OTHER, NULL);
        if (rest->count > 0)
            sw_measure(sw_series(meter->shown[i], values), rest->shown[i]);
        else if (meter->has_others)
            sw_series_remove(meter->shown[i], values);
    }
    meter->has_others = rest->count > 0;
    for (int i = 0; i < COORD_REASONS; i++) {
        values_of(values, "", OTHER, reasons[i]);
        if (rest->reasons[i] > 0)
            sw_measure(sw_series(meter->degraded, values), rest->reasons[i]);
        else if (meter->has_other_reason[i])
            sw_series_remove(meter->degraded, values);
        meter->has_other_reason[i] = rest->reasons[i] > 0;
    }
}

/* ---- overlaps ---- */

/* Each coordination counts for itself: two of them in an overlap for a second are two seconds. */
static void count_time(struct coord_meter *meter)
{
    uint64_t now_ms = sw_time_ms(meter->self);

    if (meter->over > 0)
        sw_count(meter->overlap, (double)meter->over * (double)(now_ms - meter->counted_ms) / 1e3);
    meter->counted_ms = now_ms;
}

static void collect(struct sw_instance *self)
{
    struct coord_state *state = sw_state(self);
    struct rest rest = {.meter = &state->meter, .now_us = sw_time_wall_us(self)};

    count_time(&state->meter);
    coord_spaces_each(state->spaces, show_space, &rest);
    show_rest(&state->meter, &rest);
}

struct finding {
    const struct sw_instance *self;
    const struct space *space;
};

static const struct sw_object *find(void *arg, const char *name)
{
    const struct finding *finding = arg;

    return sw_lookup(finding->self, &sw_kind_deployment, finding->space->namespace_, name);
}

static void say_overlap(struct coord_meter *meter, const struct space *space,
                        const struct space_group *group, uint32_t rolling)
{
    if (group->is_over)
        sw_warn(meter->self, "more Deployments roll at once than may",
                SW_STR("namespace", space->namespace_), SW_STR("coordination", group->name),
                SW_INT("rolling", rolling), SW_INT("maxActive", group->max_active));
    else
        sw_info(meter->self, "no more Deployments roll at once than may",
                SW_STR("namespace", space->namespace_), SW_STR("coordination", group->name));
}

static void recount_group(struct coord_meter *meter, const struct space *space,
                          struct space_group *group)
{
    struct finding finding = {meter->self, space};
    uint32_t rolling = coord_observer_count(space->observer, group->selector, find, &finding);
    bool is_over = rolling > group->max_active;

    if (is_over == group->is_over)
        return;
    group->is_over = is_over;
    meter->over += is_over ? 1U : -1U;
    say_overlap(meter, space, group, rolling);
}

static void recount(struct coord_meter *meter, struct space *space)
{
    count_time(meter);
    space->is_uncounted = false;
    for (uint32_t i = 0; space->observer && i < space->group_count; i++)
        recount_group(meter, space, &space->groups[i]);
}

static bool selects(const struct space_group *group, const struct sw_deployment *deployment)
{
    return deployment && group->selector &&
           sw_selector_matches(group->selector, &deployment->meta.labels);
}

/* For the others nothing has changed. */
static void recount_groups_of(struct coord_meter *meter, struct space *space,
                              const struct sw_deployment *old, const struct sw_deployment *now)
{
    count_time(meter);
    for (uint32_t i = 0; i < space->group_count; i++)
        if (selects(&space->groups[i], old) || selects(&space->groups[i], now))
            recount_group(meter, space, &space->groups[i]);
}

static bool see_first(void *arg, const struct sw_object *object)
{
    coord_observer_see(arg, NULL, sw_as_deployment(object));
    return true;
}

void coord_meter_look(struct coord_meter *meter, struct space *space)
{
    if (space->group_count == 0) {
        space->observer = coord_observer_free(space->observer);
        return;
    }
    if (!space->observer) {
        space->observer = coord_observer_new();
        sw_each(meter->self, &sw_kind_deployment, space->namespace_, NULL, see_first,
                space->observer);
    }
    recount(meter, space);
}

void coord_meter_see(struct coord_meter *meter, struct space *space,
                     const struct sw_deployment *old, const struct sw_deployment *now,
                     bool is_from_list)
{
    if (!space->observer || !coord_observer_see(space->observer, old, now))
        return;
    if (is_from_list)
        space->is_uncounted = true;
    else
        recount_groups_of(meter, space, old, now);
}

static void recount_if_needed(void *arg, struct space *space)
{
    if (space->is_uncounted)
        recount(arg, space);
}

void coord_meter_listed(struct coord_meter *meter)
{
    coord_spaces_each(meter->spaces, recount_if_needed, meter);
}

void coord_meter_forget(struct coord_meter *meter, struct space *space, const char *name)
{
    struct space_group *group = coord_space_group(space, name);

    if (!group)
        return;
    count_time(meter);
    meter->over -= group->is_over;
    group->is_over = false;
    drop_series(meter, space, group);
}

/* ---- the leader ---- */

static void add_facts(struct coord_meter *meter, const struct coord_result *facts, int sign)
{
    meter->total.selected += sign * (int64_t)facts->selected;
    meter->total.pending += sign * (int64_t)facts->pending;
    meter->total.active += sign * (int64_t)facts->active;
    meter->total.groups += sign * (int64_t)facts->groups;
}

void coord_meter_plan(struct coord_meter *meter, struct space *space,
                      const struct coord_result *result)
{
    add_facts(meter, &space->facts, -1);
    space->facts = result ? *result : (struct coord_result){0};
    add_facts(meter, &space->facts, 1);
    sw_measure(meter->selected, (double)meter->total.selected);
    sw_measure(meter->pending, (double)meter->total.pending);
    sw_measure(meter->active, (double)meter->total.active);
    sw_measure(meter->groups, (double)meter->total.groups);
}

static void count_turn(struct coord_meter *meter, struct space *space,
                       const struct coord_action *action, uint64_t took_ms)
{
    double waited = (double)action->waited_us / 1e6;
    double handed = (double)(action->handing_ms + took_ms) / 1e3;

    sw_count(meter->releases, 1);
    if (waited > 0)
        sw_observe(meter->waited, waited);
    if (action->is_handover)
        sw_observe(meter->handed, handed);
    for (uint32_t i = 0; space && i < action->group_count; i++) {
        struct space_group *group = coord_space_group(space, action->groups[i]);
        if (!group)
            continue;
        count(meter, space, group, COORD_TURNS, 1);
        count(meter, space, group, COORD_WAIT_SECONDS, waited > 0 ? waited : 0);
        count(meter, space, group, COORD_HANDOVERS, action->is_handover);
        count(meter, space, group, COORD_HANDOVER_SECONDS, action->is_handover ? handed : 0);
    }
}

void coord_meter_answer(struct coord_meter *meter, struct space *space,
                        const struct coord_action *action, enum sw_outcome outcome,
                        uint64_t took_ms)
{
    if (outcome == SW_CONFLICT)
        sw_count(meter->lost, 1);
    else if (outcome == SW_REFUSED || outcome == SW_UNKNOWN)
        sw_count(meter->failed, 1);
    if (outcome != SW_OK)
        return;
    if (action->type == COORD_STATUS && action->is_record)
        sw_count(meter->records, 1);
    if (action->type == COORD_HOLD && action->verb == SW_HOLD_RELEASE)
        count_turn(meter, space, action, took_ms);
}

/* ---- start ---- */

static void make_own(struct coord_meter *meter, struct sw_instance *self)
{
    /* From a blink to a night's queue. */
    static const double waits[] = {1, 5, 15, 60, 300, 900, 3600, 14400, 43200};
    /* From three answers of a near API server to a person who has to help. */
    static const double handings[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                      0.5,   1,    2.5,   10,   60,  600};

    meter->groups = sw_gauge(self, "slipway_coordinations", "Coordinations.", NULL, NULL);
    meter->selected = sw_gauge(self, "slipway_coordinated_deployments",
                               "Deployments that a coordination selects.", NULL, NULL);
    meter->pending = sw_gauge(self, "slipway_waiting_deployments",
                              "Deployments that wait for their turn.", NULL, NULL);
    meter->active =
        sw_gauge(self, "slipway_active_deployments", "Deployments whose turn it is.", NULL, NULL);
    meter->releases = sw_counter(self, "slipway_turns_total", "Turns given.", NULL, NULL);
    meter->records = sw_counter(self, "slipway_records_total",
                                "Records of an active set, each before a release.", NULL, NULL);
    meter->lost = sw_counter(self, "slipway_lost_writes_total",
                             "Writes whose precondition no longer held.", NULL, NULL);
    meter->failed = sw_counter(self, "slipway_failed_writes_total",
                               "Writes that were refused or not answered.", NULL, NULL);
    meter->waited = sw_histogram(self, "slipway_wait_seconds",
                                 "From the moment a Deployment began to wait to its turn.", waits,
                                 sizeof waits / sizeof waits[0]);
    meter->handed = sw_histogram(self, "slipway_handover_seconds",
                                 "From the end of one turn to the release of the next.", handings,
                                 sizeof handings / sizeof handings[0]);
}

static void make_shown(struct coord_meter *meter, struct sw_instance *self)
{
    static const char *const labels[] = {"namespace", "coordination", NULL};
    static const char *const with_reason[] = {"namespace", "coordination", "reason", NULL};

    meter->shown[COORD_ACTIVE] = sw_gauge_family(self, "slipway_coordination_active",
                                                 "Deployments whose turn it is.", labels);
    meter->shown[COORD_WAITING] = sw_gauge_family(self, "slipway_coordination_waiting",
                                                  "Deployments that wait for their turn.", labels);
    meter->shown[COORD_OLDEST_WAIT] =
        sw_gauge_family(self, "slipway_coordination_oldest_wait_seconds",
                        "How long the longest waiting one has waited.", labels);
    meter->shown[COORD_TURN] = sw_gauge_family(self, "slipway_coordination_turn_seconds",
                                               "How long the longest turn has lasted.", labels);
    meter->shown[COORD_SUSPENDED] =
        sw_gauge_family(self, "slipway_coordination_suspended",
                        "1 while nobody is given a turn by spec.suspend.", labels);
    meter->degraded =
        sw_gauge_family(self, "slipway_coordination_degraded",
                        "1 while the condition Degraded is True, by its reason.", with_reason);
    meter->counted[COORD_TURNS] =
        sw_counter_family(self, "slipway_coordination_turns_total", "Turns given.", labels);
    meter->counted[COORD_WAIT_SECONDS] =
        sw_counter_family(self, "slipway_coordination_wait_seconds_total",
                          "Seconds that those who were given a turn had waited.", labels);
    meter->counted[COORD_HANDOVERS] =
        sw_counter_family(self, "slipway_coordination_handovers_total",
                          "Turns given right after another one's.", labels);
    meter->counted[COORD_HANDOVER_SECONDS] =
        sw_counter_family(self, "slipway_coordination_handover_seconds_total",
                          "Seconds from the end of one turn to the release of the next.", labels);
    meter->summed = sw_gauge(self, "slipway_coordinations_without_series",
                             "Coordinations that have no series of their own.", NULL, NULL);
}

void coord_meter_start(struct coord_meter *meter, struct sw_instance *self,
                       const struct space_table *spaces, uint32_t most)
{
    meter->self = self;
    meter->spaces = spaces;
    meter->most = most;
    meter->counted_ms = sw_time_ms(self);
    make_own(meter, self);
    make_shown(meter, self);
    meter->overlap = sw_counter(self, "slipway_overlap_seconds_total",
                                "Seconds in which more Deployments of a coordination rolled than "
                                "may, by their own status.",
                                NULL, NULL);
    sw_on_collect(self, collect);
}

static void drop_all(void *arg, struct space *space)
{
    for (uint32_t i = 0; i < space->group_count; i++)
        drop_series(arg, space, &space->groups[i]);
}

void coord_meter_set_most(struct coord_meter *meter, uint32_t most)
{
    if (most < meter->own)
        coord_spaces_each(meter->spaces, drop_all, meter);
    meter->most = most;
}
