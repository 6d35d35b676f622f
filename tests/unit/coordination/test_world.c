/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The property test: cases from seeds, each a random beginning and random events, ended fairly. A
 * failure prints its seed, is shrunk by leaving out events, and is replayed with words.
 *
 *     test_coordination_world [--cases N] [--seed N] [--mutation NAME]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/memory.h>

#include "world.h"

#define EVENTS_MAX 160

static uint64_t mix(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

struct history {
    struct config config;
    uint64_t seed;
    struct event events[EVENTS_MAX];
    size_t count;
};

enum narrow {
    DELETED,  /* one ends and another of its name begins */
    PUT_BACK, /* templates change, and change back */
    FORGED,   /* copies of older objects bring old annotations back */
    RELABELLED,
    NARROWS,
};

static enum narrow narrow_of(enum mutation mutation, uint64_t r)
{
    switch (mutation) {
    case GONE_BY_CACHE:
        return DELETED;
    case FENCE_LEFT_OUT:
        return PUT_BACK;
    case WEBHOOK_WITHOUT_STRIP:
        return FORGED;
    default:
        return (enum narrow)(r % NARROWS);
    }
}

static void narrow_user(struct event *event, enum narrow narrow)
{
    uint32_t who = event->a % 16, kind = 0;

    event->b = event->b / 6 * 6 + event->b / 1024 % 2; /* one of two templates */
    switch (narrow) {
    case DELETED:
        kind = 29;
        event->b -= event->b % 3;
        who = 0;
        break;
    case PUT_BACK:
        break;
    case FORGED:
        kind = event->a / 16 % 2 ? 7 : 0;
        break;
    default:
        kind = event->a / 16 % 4 ? 0 : 8;
        break;
    }
    event->a = who + 16 * kind;
}

/* Whoever has seen the end of the first one mostly does not see the other of its name. */
static void narrow_reborn(const struct history *history, struct event *event)
{
    uint32_t objects = (uint32_t)(history->config.deployments + history->config.groups);

    if (event->kind == 0 && event->b / 8 % 8)
        event->a = 1 + event->a % (objects - 1);
    if (event->kind > 14)
        event->kind = event->a % 2 ? 4 : 8;
}

static bool is_stepped(enum mutation mutation, uint64_t r)
{
    if (mutation == NO_MUTATION || mutation == OWN_WRITE_STALE)
        return r % 2 == 0;
    return mutation == OTHER_POLICY_UNASKED;
}

/* Two leaders, two or three Deployments that wait, and every step of the hand-over by itself: what
 * random events of all kinds hardly ever put together. */
static void make_narrow(struct history *history, uint64_t r, uint64_t *state)
{
    static const uint8_t kinds[] = {0, 0,  0,  0,  0,  0,  4,  4,  4,  4,  8,  8,  8,
                                    8, 11, 11, 11, 11, 17, 17, 17, 17, 23, 29, 30, 14};
    const enum mutation mutation = history->config.mutation;
    const enum narrow narrow = narrow_of(mutation, r / 512);

    history->config.deployments = 2 + (int)(r % 4 == 0);
    history->config.groups = 1 + (int)(r / 8 % 8 == 0);
    history->config.leaders = 2;
    history->config.is_ignored = false;
    history->config.has_two_leaders = r / 64 % 8 != 0;
    history->config.is_narrow = true;
    history->config.is_blind = mutation == WEBHOOK_ABSENT_MARKS || r / 4096 % 4 == 0;
    history->config.is_behind = mutation == FENCE_LEFT_OUT || r / 16384 % 3 == 0;
    history->config.is_reborn = mutation == GONE_BY_CACHE || r / 65536 % 6 == 0;
    history->config.is_stepped = is_stepped(mutation, r >> 40);
    history->count = 60 + mix(state) % (EVENTS_MAX - 60);
    for (size_t i = 0; i < history->count; i++) {
        struct event *event = &history->events[i];
        *event = (struct event){kinds[mix(state) % sizeof kinds], (uint32_t)mix(state),
                                (uint32_t)mix(state)};
        /* Who comes after a deletion knows nothing of the one that was there before. */
        if (narrow == DELETED && (event->kind == 14 || event->kind == 30))
            *event = (struct event){29, event->a, event->b / 4 * 4};
        if (history->config.is_reborn)
            narrow_reborn(history, event);
        if (event->kind == 23)
            narrow_user(event, narrow);
    }
}

static bool has_narrow_only(enum mutation mutation)
{
    return mutation == GONE_BY_CACHE || mutation == FENCE_LEFT_OUT ||
           mutation == WEBHOOK_WITHOUT_STRIP || mutation == WEBHOOK_ABSENT_MARKS;
}

static void make(struct history *history, uint64_t seed, enum mutation mutation)
{
    uint64_t state = seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
    uint64_t r = mix(&state);

    history->seed = mix(&state);
    history->config = (struct config){
        .deployments = 2 + (int)(r % 100 < 60   ? 0
                                 : r % 100 < 90 ? 1
                                                : 2 + r / 100 % 3),
        .groups = 1 + (int)(r / 1024 % 8 < 5   ? 0
                            : r / 1024 % 8 < 7 ? 1
                                               : 2),
        .leaders = 2 + (int)(r / 65536 % 2),
        .is_ignored = r / 131072 % 4 == 0,
        .has_two_leaders = r / 524288 % 3 == 0,
        .mutation = mutation,
    };
    if (seed % 3 == 0 || has_narrow_only(mutation)) {
        make_narrow(history, mix(&state), &state);
        return;
    }
    history->config.is_stepped = is_stepped(mutation, r >> 40);
    history->config.is_taken_over = r >> 24 & 1 && r >> 25 & 1;
    history->config.is_refusing = r >> 26 & 1 && r >> 27 & 1;
    history->config.is_small = (r >> 28) % 8 == 0;
    history->count = 40 + mix(&state) % (EVENTS_MAX - 40);
    for (size_t i = 0; i < history->count; i++)
        history->events[i] =
            (struct event){(uint8_t)mix(&state), (uint32_t)mix(&state), (uint32_t)mix(&state)};
}

static bool fails(struct world *world, const struct history *history)
{
    world_begin(world, &history->config, history->seed);
    for (size_t i = 0; i < history->count && !world->failure; i++) {
        if (world->is_loud)
            printf("# event %zu: %u %u %u\n", i, history->events[i].kind, history->events[i].a,
                   history->events[i].b);
        world_event(world, &history->events[i]);
    }
    if (!world->failure)
        world_end(world);
    world_done(world);
    return world->failure != NULL;
}

/* Leaves out runs of events, ever shorter ones, for as long as it still fails. */
static void shrink(struct world *world, struct history *history)
{
    for (size_t width = history->count / 2; width > 0; width /= 2)
        for (size_t at = 0; at + width <= history->count;) {
            struct history less = *history;
            memmove(less.events + at, less.events + at + width,
                    (less.count - at - width) * sizeof less.events[0]);
            less.count -= width;
            if (fails(world, &less))
                *history = less;
            else
                at += width;
        }
}

static void explain(struct world *world, struct history *history, bool is_shrunk)
{
    if (is_shrunk)
        shrink(world, history);
    const struct config *config = &history->config;
    printf("# %d deployments, %d coordinations, %d leaders%s%s%s%s%s%s, %zu events\n",
           config->deployments, config->groups, config->leaders,
           config->has_two_leaders ? " (two at once)" : "",
           config->is_ignored ? ", webhook may be unreached" : "",
           config->is_taken_over ? ", after the reference" : "",
           config->is_refusing ? ", writes may be refused" : "",
           config->is_small ? ", lists are too large" : "",
           config->is_stepped ? ", with another policy" : "", history->count);
    world->is_loud = true;
    fails(world, history);
    world->is_loud = false;
}

static enum mutation mutation_named(const char *name)
{
    for (int i = 0; i < MUTATIONS; i++)
        if (strcmp(mutation_names[i], name) == 0)
            return (enum mutation)i;
    fprintf(stderr, "no mutation %s\n", name);
    exit(2);
}

struct sums {
    uint64_t writes, releases, records, runs;
};

static bool run_cases(struct world *world, uint64_t first, uint64_t cases, enum mutation mutation,
                      bool is_explained, uint64_t *ret_failed, struct sums *sums)
{
    struct history history;

    for (uint64_t seed = first; seed < first + cases; seed++) {
        make(&history, seed, mutation);
        if (fails(world, &history)) {
            *ret_failed = seed;
            if (is_explained) {
                printf("# seed %llu: %s\n", (unsigned long long)seed, world->failure);
                explain(world, &history, true);
            }
            return false;
        }
        sums->writes += world->writes;
        sums->releases += world->releases;
        sums->records += world->records;
        sums->runs += world->runs;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct world world;
    enum mutation mutation = NO_MUTATION;
    uint64_t cases = 100000, first = 1, mutated_cases = 20000, failed = 0;
    bool has_seed = false;
    int bad = 0, number = 0;
    struct sums sums = {0};

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--cases") == 0)
            cases = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--mutated-cases") == 0)
            mutated_cases = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--mutation") == 0)
            mutation = mutation_named(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0) {
            first = strtoull(argv[i + 1], NULL, 10);
            has_seed = true;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (has_seed && cases == 100000) {
        struct history history;
        make(&history, first, mutation);
        explain(&world, &history, getenv("SHRINK") != NULL);
        sw_arena_free(world.arena);
        return world.failure != NULL;
    }
    printf("TAP version 13\n");
    bool is_right = run_cases(&world, first, cases, mutation, true, &failed, &sums);
    bad += !is_right;
    printf("%sok %d - world: %llu cases keep every promise\n", is_right ? "" : "not ", ++number,
           (unsigned long long)cases);
    printf("# %llu runs of the plan, %llu writes, %llu records, %llu releases\n",
           (unsigned long long)sums.runs, (unsigned long long)sums.writes,
           (unsigned long long)sums.records, (unsigned long long)sums.releases);
    /* The plan goes by the versions in answers: a store that lags behind them does no harm. */
    if (mutated_cases > 0) {
        is_right =
            run_cases(&world, first, mutated_cases / 10, OWN_WRITE_STALE, true, &failed, &sums);
        bad += !is_right;
        printf("%sok %d - world: own writes read back stale do no harm\n", is_right ? "" : "not ",
               ++number);
    }
    for (int m = NO_MUTATION + 1; m < MUTATIONS && mutated_cases > 0; m++) {
        if (m == OWN_WRITE_STALE)
            continue;
        bool is_caught =
            !run_cases(&world, 1, mutated_cases, (enum mutation)m, false, &failed, &sums);
        bad += !is_caught;
        printf("%sok %d - world: notices %s%s%llu\n", is_caught ? "" : "not ", ++number,
               mutation_names[m], is_caught ? ", after cases: " : ", cases: ",
               (unsigned long long)(is_caught ? failed : mutated_cases));
    }
    printf("1..%d\n", number);
    sw_arena_free(world.arena);
    return bad > 0;
}
