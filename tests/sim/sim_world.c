/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation of whole slipway. Cases from seeds; a failure is shrunk by leaving out events,
 * faults and actors, and the command line that replays what is left is printed.
 *
 *     sim_world                       the test: TAP
 *     sim_world --seed 7 --trace      the story of one case
 *     sim_world --minutes 600         cases until then, or until one fails
 *     sim_world --overshoot 1000      a figure: Pods beyond the stop in so many stepped rollouts
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/util.h"
#include "world_steps.h"

#define SHRINK_RUNS 250
#define STEPPED_EVERY 8 /* seeds */

struct options {
    bool has_seed;
    uint64_t seed, first;
    uint64_t cases, steps, minutes, bug_cases, overshoot;
    bool is_loud, is_stepped;
    enum bug bug;
    const char *keep; /* numbers of the events to keep, "1-4,9"; NULL: all */
    /* -1: as the seed says */
    long faults, replicas, deployments, groups, stateful_sets, daemon_sets;
};

/* ---- making a case ---- */

static uint64_t gap_ms(struct sw_rng *rng)
{
    /* Most things come close behind each other; else nothing would ever meet. */
    switch (sw_rng_between(rng, 0, 9)) {
    case 0:
    case 1:
    case 2:
        return sw_rng_between(rng, 0, 20);
    case 3:
    case 4:
    case 5:
        return sw_rng_between(rng, 20, 600);
    case 6:
    case 7:
        return sw_rng_between(rng, 600, 4000);
    case 8:
        return sw_rng_between(rng, 4000, 12000);
    default:
        return sw_rng_between(rng, 12000, 40000);
    }
}

static enum event_kind kind_of(struct sw_rng *rng)
{
    switch (sw_rng_between(rng, 0, 9)) {
    case 0:
    case 1:
        return EVENT_TROUBLE;
    case 2:
    case 3:
        return EVENT_TRAP;
    case 4:
        return EVENT_NETWORK;
    default:
        return EVENT_USER;
    }
}

static uint32_t pick(struct sw_rng *rng, const uint8_t *from, size_t count)
{
    return from[sw_rng_between(rng, 0, count - 1)];
}

/* Two or three Deployments that always have something to roll, and mostly two leaders that both
 * believe to lead: what events of all kinds hardly ever put together. */
static void make_narrow(struct case_ *case_, struct sw_rng *rng)
{
    /* Of users_act: mostly templates, new and older ones; pauses, labels, copies, deletions,
     * drains. */
    static const uint8_t acts[] = {23, 23, 23, 23, 23, 15, 15, 10, 0,  1,
                                   2,  3,  7,  8,  12, 14, 22, 16, 17, 18};
    static const uint8_t kinds[] = {EVENT_USER,    EVENT_USER,    EVENT_USER,
                                    EVENT_USER,    EVENT_TRAP,    EVENT_TRAP,
                                    EVENT_TROUBLE, EVENT_NETWORK, EVENT_PLOT};
    uint64_t at = sw_rng_between(rng, 800, 3000);

    case_->deployments = 2 + (int)sw_rng_between(rng, 0, 1);
    case_->groups = 1 + (int)(sw_rng_between(rng, 0, 5) == 0);
    case_->replicas = 2 + (int)(sw_rng_between(rng, 0, 4) == 0);
    case_->faults &= ~(unsigned)FAULT_NO_LEASE;
    if (sw_rng_between(rng, 0, 2))
        case_->faults |= FAULT_NO_LEASE;
    for (size_t i = 0; i < case_->count; i++) {
        struct event *event = &case_->events[i];
        *event = (struct event){at, (enum event_kind)pick(rng, kinds, sizeof kinds),
                                (uint32_t)sw_rng_next(rng), (uint32_t)sw_rng_next(rng)};
        if (event->kind == EVENT_USER)
            event->a = event->a % 16 + 16 * pick(rng, acts, sizeof acts);
        /* What a bug is about has to happen: coordinations are deleted. */
        if (event->kind == EVENT_USER && case_->bug == BUG_DELETION_HIDDEN && event->a % 4 == 0) {
            event->a = event->a % 16 + 16 * 22;
            event->b -= event->b % 8;
        } else
            event->b &= ~UINT32_C(0x100); /* for a short time only */
        at +=
            sw_rng_between(rng, 0, 3) ? sw_rng_between(rng, 0, 120) : sw_rng_between(rng, 100, 900);
    }
    case_->duration_ms = at;
}

static void make_wide(struct case_ *case_, struct sw_rng *rng)
{
    uint64_t at = sw_rng_between(rng, 2000, 8000);

    case_->deployments = 2 + (int)sw_rng_between(rng, 0, 3);
    case_->groups =
        1 + (int)(sw_rng_between(rng, 0, 3) == 0) + (int)(sw_rng_between(rng, 0, 7) == 0);
    case_->replicas = 1 + (int)sw_rng_between(rng, 0, 2);
    if (sw_rng_between(rng, 0, 3)) /* mostly with an election */
        case_->faults &= ~(unsigned)FAULT_NO_LEASE;
    for (size_t i = 0; i < case_->count; i++) {
        at += gap_ms(rng);
        case_->events[i] = (struct event){at, kind_of(rng), (uint32_t)sw_rng_next(rng),
                                          (uint32_t)sw_rng_next(rng)};
    }
    case_->duration_ms = at + gap_ms(rng);
}

/* Two that lead, of which each knows the past of some of the objects, and what one has sent arrives
 * when the other has long gone on: the orders of events for which the hand-over has its parts. */
static void make_tight(struct case_ *case_, struct sw_rng *rng)
{
    /* Of users_act: templates, pauses, a copy, labels. */
    static const uint8_t acts[] = {23, 23, 23, 10, 10, 15, 1, 8, 3};
    static const uint8_t kinds[] = {EVENT_PLOT, EVENT_PLOT, EVENT_PLOT, EVENT_USER, EVENT_NETWORK};
    uint64_t at = sw_rng_between(rng, 3000, 5000);

    case_->faults = FAULT_SLOW | FAULT_NO_LEASE | FAULT_BEHIND | FAULT_KILL;
    if (sw_rng_between(rng, 0, 3) == 0)
        case_->faults |= FAULT_LATE;
    case_->is_tight = true;
    case_->deployments = 2 + (int)sw_rng_between(rng, 0, 1);
    case_->groups = 1;
    case_->replicas = 2;
    case_->count = SW_MIN(case_->count, 80U);
    for (size_t i = 0; i < case_->count; i++) {
        struct event *event = &case_->events[i];
        *event = (struct event){at, (enum event_kind)pick(rng, kinds, sizeof kinds),
                                (uint32_t)sw_rng_next(rng), (uint32_t)sw_rng_next(rng)};
        if (event->kind == EVENT_USER)
            event->a = event->a % 16 + 16 * pick(rng, acts, sizeof acts);
        at += sw_rng_between(rng, 0, 3) ? sw_rng_between(rng, 500, 3000)
                                        : sw_rng_between(rng, 0, 100);
    }
    case_->duration_ms = at;
}

/* Workloads of all kinds with SteppedRollouts, alone or under coordinations. */
static void make_stepped(struct case_ *case_, struct sw_rng *rng)
{
    /* Of users_act, beside those about steps: templates, pauses, labels, holds, sizes, appliers,
     * drains, a coordination. */
    static const uint8_t acts[] = {23, 23, 23, 9, 10, 15, 1, 2, 3, 4, 11, 12, 13, 17, 18, 0, 22};
    static const uint8_t kinds[] = {EVENT_USER, EVENT_USER, EVENT_USER,    EVENT_USER,
                                    EVENT_USER, EVENT_TRAP, EVENT_TROUBLE, EVENT_NETWORK};
    uint64_t at = sw_rng_between(rng, 15000, 40000); /* the first ones are complete */

    case_->is_stepped = true;
    case_->is_alone = sw_rng_between(rng, 0, 1);
    case_->deployments = 1 + (int)sw_rng_between(rng, 0, 2);
    case_->stateful_sets = (int)sw_rng_between(rng, 0, 2);
    case_->daemon_sets = (int)sw_rng_between(rng, 0, 1);
    case_->groups = 1;
    case_->replicas = 1 + (int)sw_rng_between(rng, 0, 2);
    if (sw_rng_between(rng, 0, 9)) /* mostly with an election */
        case_->faults &= ~(unsigned)FAULT_NO_LEASE;
    if (sw_rng_between(rng, 0, 3)) /* what is heard late is excused */
        case_->faults &= ~(unsigned)FAULT_BEHIND;
    if (case_->bug == BUG_STEP_CHECKS_SKIPPED) { /* somebody has to take over, and see it */
        case_->faults = FAULT_KILL;
        case_->count = 60;
    }
    case_->count = SW_MIN(case_->count, 60U);
    for (size_t i = 0; i < case_->count; i++) {
        struct event *event = &case_->events[i];
        *event = (struct event){at, (enum event_kind)pick(rng, kinds, sizeof kinds),
                                (uint32_t)sw_rng_next(rng), (uint32_t)sw_rng_next(rng)};
        if (event->kind == EVENT_USER && sw_rng_between(rng, 0, 2) == 0)
            event->a = event->a % 16 + 16 * pick(rng, acts, sizeof acts);
        else if (event->kind == EVENT_USER)
            event->a |= STEPPED_ACT;
        /* Steps take their time: half of what happens falls into them. */
        at += sw_rng_between(rng, 0, 1) ? sw_rng_between(rng, 4000, 40000) : gap_ms(rng);
    }
    case_->duration_ms = at + gap_ms(rng);
}

static bool is_about_order(enum bug bug)
{
    return bug == BUG_RELEASE_WITHOUT_PRECONDITION || bug == BUG_RECORD_WITHOUT_PRECONDITION ||
           bug == BUG_FENCE_NOT_WRITTEN || bug == BUG_TURN_NOT_WRITTEN;
}

static void make(struct case_ *case_, uint64_t seed, enum bug bug, bool is_stepped)
{
    struct sw_rng rng;

    sw_rng_seed(&rng, seed);
    *case_ = (struct case_){
        .seed = seed,
        .bug = bug,
        .faults = (unsigned)sw_rng_next(&rng) & FAULT_ALL,
        .count = 10 + sw_rng_between(&rng, 0, EVENTS_MAX - 10),
    };
    if (bug == BUG_RESIDUAL_AT_ONCE) { /* where there is no lease, several may */
        case_->count = EVENTS_MAX;
        make_narrow(case_, &rng);
        case_->faults = 0;
        case_->deployments = 3;
        return;
    }
    if (is_about_order(bug)) {
        case_->count = EVENTS_MAX;
        make_tight(case_, &rng);
        return;
    }
    if (sw_rng_between(&rng, 0, 7) == 0) /* now and then a quiet cluster */
        case_->faults = 0;
    /* Not drawn: old seeds stay what they were. */
    if (is_stepped || bug >= BUG_STEP_HOLD_LEFT_OUT ||
        (bug == NO_BUG && seed % STEPPED_EVERY == 0)) {
        make_stepped(case_, &rng);
        return;
    }
    switch (sw_rng_between(&rng, 0, 5)) {
    case 0:
    case 1:
        make_wide(case_, &rng);
        break;
    case 2:
        make_tight(case_, &rng);
        break;
    default:
        make_narrow(case_, &rng);
        break;
    }
}

/* ---- running ---- */

struct outcome {
    char failure[1024];
    uint64_t step, steps, hash, changes, releases, records, rollouts;
    uint64_t virtual_ms;
};

static void run(const struct case_ *case_, bool is_loud, struct outcome *ret)
{
    static struct world world;

    world_begin(&world, case_, is_loud);
    if (!world.failure[0])
        world_run(&world);
    *ret = (struct outcome){
        .steps = world.steps,
        .hash = world.judge.hash,
        .changes = world.judge.changes,
        .releases = world.judge.releases,
        .records = world.judge.records,
        .rollouts = world.judge.rollouts,
        .virtual_ms = world.now_ms - world.started_ms,
    };
    world_done(&world);
    snprintf(ret->failure, sizeof ret->failure, "%s", world.failure);
    ret->step = world.failed_step;
}

/* ---- shrinking ---- */

/* Numbers that events keep while others are left out. */
static size_t numbers[EVENTS_MAX];

/* What the failure that is being shrunk says, from the first word that is no number or name. */
static const char *wanted_words;

static const char *words_of(const char *failure)
{
    const char *at = strchr(failure, ' ');

    return at ? at : failure;
}

/* In the same way as the whole case does. */
static bool fails(const struct case_ *case_, int *runs)
{
    struct outcome outcome;

    ++*runs;
    run(case_, false, &outcome);
    return outcome.failure[0] && strncmp(words_of(outcome.failure), wanted_words, 8) == 0;
}

static void leave_out(struct case_ *case_, size_t from, size_t count)
{
    memmove(&case_->events[from], &case_->events[from + count],
            (case_->count - from - count) * sizeof case_->events[0]);
    case_->count -= count;
}

static void shrink_events(struct case_ *case_, int *runs)
{
    for (size_t piece = case_->count / 2; piece > 0; piece /= 2)
        for (size_t from = 0; from < case_->count && *runs < SHRINK_RUNS;) {
            struct case_ smaller = *case_;
            size_t count = SW_MIN(piece, smaller.count - from);
            leave_out(&smaller, from, count);
            if (!fails(&smaller, runs)) {
                from += count;
                continue;
            }
            memmove(&numbers[from], &numbers[from + count],
                    (case_->count - from - count) * sizeof numbers[0]);
            *case_ = smaller;
        }
}

static void shrink_actors(struct case_ *case_, int *runs)
{
    int *const counts[] = {&case_->replicas, &case_->deployments, &case_->groups,
                           &case_->stateful_sets, &case_->daemon_sets};
    static const int least[] = {1, 1, 1, 0, 0};

    for (unsigned bit = 1; bit <= FAULT_ALL; bit *= 2) {
        struct case_ smaller = *case_;
        smaller.faults &= ~bit;
        if (smaller.faults != case_->faults && fails(&smaller, runs))
            *case_ = smaller;
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(counts); i++)
        while (*counts[i] > least[i]) {
            --*counts[i];
            if (!fails(case_, runs)) {
                ++*counts[i];
                break;
            }
        }
}

static void shrink(struct case_ *case_)
{
    int runs = 0;

    for (size_t i = 0; i < case_->count; i++)
        numbers[i] = i;
    shrink_actors(case_, &runs);
    shrink_events(case_, &runs);
    shrink_actors(case_, &runs);
}

/* ---- reports ---- */

static const char *keep_text(const struct case_ *case_)
{
    static char text[EVENTS_MAX * 5];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < case_->count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%zu", i ? "," : "", numbers[i]);
    return case_->count > 0 ? text : "none";
}

static void report(const struct case_ *case_, const struct outcome *outcome)
{
    struct case_ smaller = *case_;
    struct outcome after;

    printf("# seed %llu, step %llu: %s\n", (unsigned long long)case_->seed,
           (unsigned long long)outcome->step, outcome->failure);
    fflush(stdout);
    wanted_words = words_of(outcome->failure);
    shrink(&smaller);
    run(&smaller, false, &after);
    printf("# shrunk from %zu to %zu events: %s\n", case_->count, smaller.count, after.failure);
    printf(
        "# replay: sim_world --seed %llu%s --faults %u --replicas %d --deployments %d --groups %d "
        "--stateful-sets %d --daemon-sets %d --keep %s --bug %s --trace\n",
        (unsigned long long)smaller.seed, smaller.is_stepped ? " --stepped" : "", smaller.faults,
        smaller.replicas, smaller.deployments, smaller.groups, smaller.stateful_sets,
        smaller.daemon_sets, keep_text(&smaller), bug_names[smaller.bug]);
    fflush(stdout);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- by hand ---- */

static void keep_events(struct case_ *case_, const char *keep)
{
    size_t count = 0;

    for (const char *at = keep; *at >= '0' && *at <= '9';) {
        char *end;
        size_t from = strtoul(at, &end, 10), to = from;
        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        for (; from <= to && from < case_->count; from++)
            case_->events[count++] = case_->events[from];
        at = *end == ',' ? end + 1 : end;
    }
    case_->count = count;
}

static void adjust(struct case_ *case_, const struct options *options)
{
    if (options->keep)
        keep_events(case_, options->keep);
    if (options->faults >= 0)
        case_->faults = (unsigned)options->faults & FAULT_ALL;
    if (options->replicas > 0)
        case_->replicas = (int)SW_MIN(options->replicas, REPLICAS_MAX);
    if (options->deployments > 0)
        case_->deployments = (int)SW_MIN(options->deployments, DEPLOYMENTS_MAX);
    if (options->groups > 0)
        case_->groups = (int)SW_MIN(options->groups, GROUPS_MAX);
    if (options->stateful_sets >= 0)
        case_->stateful_sets = (int)SW_MIN(options->stateful_sets, 2);
    if (options->daemon_sets >= 0)
        case_->daemon_sets = (int)SW_MIN(options->daemon_sets, 1);
}

static int run_one(const struct options *options)
{
    struct case_ case_;
    struct outcome outcome;
    double began = now_s();

    make(&case_, options->seed, options->bug, options->is_stepped);
    adjust(&case_, options);
    run(&case_, options->is_loud, &outcome);
    printf("# %llu steps, %.1f virtual minutes, %llu changes, %llu records, %llu releases, "
           "%llu rollouts, hash %016llx, %.2f s\n",
           (unsigned long long)outcome.steps, (double)outcome.virtual_ms / 60000,
           (unsigned long long)outcome.changes, (unsigned long long)outcome.records,
           (unsigned long long)outcome.releases, (unsigned long long)outcome.rollouts,
           (unsigned long long)outcome.hash, now_s() - began);
    if (!outcome.failure[0])
        return 0;
    if (options->is_loud || options->keep)
        printf("# seed %llu, step %llu: %s\n", (unsigned long long)options->seed,
               (unsigned long long)outcome.step, outcome.failure);
    else
        report(&case_, &outcome);
    return 1;
}

/* ---- the tests ---- */

static int test_number;
static bool has_failed;

static void say_result(bool is_good, const char *name)
{
    printf("%s %d - %s\n", is_good ? "ok" : "not ok", ++test_number, name);
    fflush(stdout);
    has_failed |= !is_good;
}

static void test_outage(const struct options *options)
{
    struct world *world = SW_NEW(struct world);

    world_outage(world, options->is_loud);
    world_done(world);
    if (world->failure[0])
        printf("# %s\n", world->failure);
    say_result(!world->failure[0], "sim: five minutes without an API server are survived");
    sw_free(world);
}

/* Twice the same, and another seed another. */
static void test_repeats(const struct options *options)
{
    bool is_good = true;

    for (uint64_t seed = options->first; seed < options->first + 4; seed++) {
        struct case_ case_;
        struct outcome a, b, c;
        make(&case_, seed, NO_BUG, false);
        run(&case_, false, &a);
        run(&case_, false, &b);
        make(&case_, seed + 1000000, NO_BUG, false);
        run(&case_, false, &c);
        if (a.hash != b.hash || a.steps != b.steps || a.hash == c.hash || a.changes == 0) {
            printf("# seed %llu: hash %016llx after %llu steps, then %016llx after %llu; another "
                   "seed %016llx\n",
                   (unsigned long long)seed, (unsigned long long)a.hash,
                   (unsigned long long)a.steps, (unsigned long long)b.hash,
                   (unsigned long long)b.steps, (unsigned long long)c.hash);
            is_good = false;
        }
    }
    say_result(is_good, "sim: the same seed gives the same run to the byte");
}

static bool goes_on(const struct options *options, uint64_t cases, uint64_t steps, double began)
{
    if (options->minutes)
        return now_s() - began < (double)options->minutes * 60;
    return options->cases ? cases < options->cases : steps < options->steps;
}

static void test_world(const struct options *options)
{
    struct outcome all = {0};
    uint64_t cases = 0, failures = 0;
    double began = now_s();

    while (goes_on(options, cases, all.steps, began) && failures == 0) {
        struct case_ case_;
        struct outcome outcome;
        make(&case_, options->first + cases++, options->bug, options->is_stepped);
        adjust(&case_, options);
        run(&case_, false, &outcome);
        all.steps += outcome.steps;
        all.virtual_ms += outcome.virtual_ms;
        all.records += outcome.records;
        all.releases += outcome.releases;
        all.rollouts += outcome.rollouts;
        all.changes += outcome.changes;
        if (outcome.failure[0]) {
            failures++;
            report(&case_, &outcome);
        }
    }
    double took = now_s() - began;
    printf("# %llu cases, %llu steps in %.1f s: %.0f steps/s; %.1f virtual hours, %llu changes, "
           "%llu records, %llu releases, %llu rollouts\n",
           (unsigned long long)cases, (unsigned long long)all.steps, took, (double)all.steps / took,
           (double)all.virtual_ms / 3600000, (unsigned long long)all.changes,
           (unsigned long long)all.records, (unsigned long long)all.releases,
           (unsigned long long)all.rollouts);
    say_result(failures == 0 && all.releases > 0 && all.rollouts > 0,
               "sim: no seed breaks what section 8 forbids");
}

/* The test of the test. */
static void test_bug(const struct options *options, enum bug bug)
{
    char name[128];
    struct outcome outcome = {0};
    uint64_t cases = 0;

    while (cases < options->bug_cases && !outcome.failure[0]) {
        struct case_ case_;
        make(&case_, 1 + cases++, bug, false);
        run(&case_, false, &outcome);
    }
    if (outcome.failure[0])
        printf("# %s: case %llu: %s\n", bug_names[bug], (unsigned long long)cases, outcome.failure);
    snprintf(name, sizeof name, "sim: the checks find the bug %s", bug_names[bug]);
    say_result(outcome.failure[0], name);
}

/* ---- the figure ---- */

static int measure_overshoot(const struct options *options)
{
    struct overshoot found[OVERSHOOTS] = {0};
    struct world *world = SW_NEW(struct world);
    bool has_gone_well = true;

    for (uint64_t seed = 1; has_gone_well && (seed - 1) * OVERSHOOTS < options->overshoot; seed++) {
        world_overshoot(world, seed, options->is_loud, found);
        world_done(world);
        has_gone_well = !world->failure[0];
        if (!has_gone_well)
            printf("# seed %llu: %s\n", (unsigned long long)seed, world->failure);
    }
    for (size_t i = 0; i < OVERSHOOTS; i++)
        printf("surge %s: %llu rollouts, %llu holds, most %llu, sum %llu\n", overshoot_surges[i],
               (unsigned long long)found[i].rollouts, (unsigned long long)found[i].holds,
               (unsigned long long)found[i].most, (unsigned long long)found[i].sum);
    sw_free(world);
    return has_gone_well ? 0 : 1;
}

/* ---- options ---- */

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: sim_world [--seed N] [--cases N | --steps N | --minutes M] [--bug-cases N]\n"
            "                 [--first N] [--bug NAME] [--trace] [--keep 1-4,9] [--faults MASK]\n"
            "                 [--replicas N] [--deployments N] [--groups N]\n"
            "                 [--stateful-sets N] [--daemon-sets N] [--stepped]\n"
            "       sim_world --overshoot ROLLOUTS\n");
    exit(2);
}

static uint64_t number_of(const char *text)
{
    char *end;

    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || *end || end == text)
        usage();
    return number;
}

static enum bug bug_of(const char *name)
{
    for (int bug = 0; bug < BUGS; bug++)
        if (strcmp(bug_names[bug], name) == 0)
            return (enum bug)bug;
    usage();
}

static void read_option(struct options *options, const char *name, const char *value)
{
    if (strcmp(name, "--seed") == 0) {
        options->seed = number_of(value);
        options->has_seed = true;
    } else if (strcmp(name, "--first") == 0) {
        options->first = number_of(value);
    } else if (strcmp(name, "--cases") == 0) {
        options->cases = number_of(value);
    } else if (strcmp(name, "--steps") == 0) {
        options->steps = number_of(value);
    } else if (strcmp(name, "--minutes") == 0) {
        options->minutes = number_of(value);
    } else if (strcmp(name, "--bug-cases") == 0) {
        options->bug_cases = number_of(value);
    } else if (strcmp(name, "--overshoot") == 0) {
        options->overshoot = number_of(value);
    } else if (strcmp(name, "--bug") == 0) {
        options->bug = bug_of(value);
    } else if (strcmp(name, "--keep") == 0) {
        options->keep = value;
    } else if (strcmp(name, "--faults") == 0) {
        options->faults = (long)number_of(value);
    } else if (strcmp(name, "--replicas") == 0) {
        options->replicas = (long)number_of(value);
    } else if (strcmp(name, "--deployments") == 0) {
        options->deployments = (long)number_of(value);
    } else if (strcmp(name, "--groups") == 0) {
        options->groups = (long)number_of(value);
    } else if (strcmp(name, "--stateful-sets") == 0) {
        options->stateful_sets = (long)number_of(value);
    } else if (strcmp(name, "--daemon-sets") == 0) {
        options->daemon_sets = (long)number_of(value);
    } else {
        usage();
    }
}

int main(int argc, char **argv)
{
    static const uint64_t key[2] = {UINT64_C(0x736c6970776179), UINT64_C(0x73696d)};
    struct options options = {.first = 1,
                              .steps = 1000000,
                              .bug_cases = 40,
                              .faults = -1,
                              .replicas = -1,
                              .deployments = -1,
                              .groups = -1,
                              .stateful_sets = -1,
                              .daemon_sets = -1};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            options.is_loud = true;
        } else if (strcmp(argv[i], "--stepped") == 0) {
            options.is_stepped = true;
        } else if (i + 1 < argc) {
            read_option(&options, argv[i], argv[i + 1]);
            i++;
        } else {
            usage();
        }
    }
    sw_hash_set_key(key);
    json_object_seed(1);
    if (options.has_seed)
        return run_one(&options);
    if (options.overshoot)
        return measure_overshoot(&options);
    bool is_whole = !options.minutes && options.bug == NO_BUG;
    int bugs = is_whole && options.bug_cases ? BUGS - 1 : 0;
    printf("1..%d\n", 1 + 2 * is_whole + bugs);
    if (is_whole) {
        test_outage(&options);
        test_repeats(&options);
    }
    test_world(&options);
    for (int bug = 1; bug <= bugs; bug++)
        test_bug(&options, (enum bug)bug);
    return has_failed;
}
