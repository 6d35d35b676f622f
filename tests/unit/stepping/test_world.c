/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The property test of the plan: cases from seeds. A failing one prints its seed and is played
 * again with words.
 *
 *     test_stepping_world [--cases N] [--seed N] [--loud]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define CASES 20000
#define TICKS 1200

struct totals {
    unsigned long long checks, passed, succeeded, failed, retreated, rolled_back, writes;
};

static bool play(uint64_t seed, bool is_loud, struct totals *totals)
{
    static struct world world; /* large */

    world_begin(&world, seed);
    world.is_loud = is_loud;
    for (int i = 0; i < TICKS && !world.failure[0]; i++)
        world_tick(&world);
    world_end(&world);
    if (!world.failure[0])
        world_check_end(&world);
    totals->checks += world.checks;
    totals->passed += world.passed;
    totals->succeeded += world.succeeded;
    totals->failed += world.failed;
    totals->retreated += world.retreated;
    totals->rolled_back += world.rolled_back;
    totals->writes += world.writes;
    bool is_good = !world.failure[0];
    if (!is_good)
        printf("# seed %llu: %s\n", (unsigned long long)seed, world.failure);
    world_done(&world);
    return is_good;
}

int main(int argc, char **argv)
{
    uint64_t cases = CASES, seed = 1;
    struct totals totals = {0};
    bool is_loud = false;
    int bad = 0;

    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--loud") == 0)
            is_loud = true;
        else if (has_value && strcmp(argv[i], "--cases") == 0)
            cases = strtoull(argv[++i], NULL, 10);
        else if (has_value && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 10);
    }
    printf("1..2\n");
    for (uint64_t i = 0; i < cases && bad < 20; i++)
        if (!play(seed + i, is_loud, &totals)) {
            struct totals ignored = {0};
            if (bad++ == 0 && !is_loud)
                play(seed + i, true, &ignored);
        }
    printf("%sok 1 - stepping world: %llu cases keep what is promised\n", bad ? "not " : "",
           (unsigned long long)cases);
    printf("# %llu looks at the bound, %llu steps passed, %llu succeeded, %llu failed, %llu "
           "retreated, %llu rolled back, %llu writes\n",
           totals.checks, totals.passed, totals.succeeded, totals.failed, totals.retreated,
           totals.rolled_back, totals.writes);
    /* A model in which nothing happens would keep every promise. */
    bool is_rich = cases < 100 || (totals.passed > cases && totals.succeeded > cases / 2 &&
                                   totals.retreated > cases / 20 &&
                                   totals.rolled_back > cases / 20 && totals.checks > cases * 50);
    printf("%sok 2 - stepping world: enough happens in them\n", is_rich ? "" : "not ");
    return bad || !is_rich;
}
