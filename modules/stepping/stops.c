/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a rollout stops, in numbers of Pods.
 */
#include "spec.h"

static int32_t pods_of(struct sw_int_or_percent value, int32_t replicas)
{
    if (!value.is_percent)
        return value.value;
    return (int32_t)(((int64_t)value.value * replicas + 99) / 100);
}

/* From stop to stop. */
struct walk {
    const struct step_spec *spec;
    int32_t replicas;
    int32_t step; /* how many stops were there */
    int32_t stop; /* the last of them */
    size_t next;  /* of spec.steps */
};

static bool walk_on(struct walk *walk)
{
    int64_t stop;

    if (walk->step > 0 && walk->stop >= walk->replicas)
        return false;
    if (!walk->spec->steps) {
        int32_t size = pods_of(walk->spec->step_size, walk->replicas);
        stop = (int64_t)walk->stop + (size > 1 ? size : 1);
    } else if (walk->next < walk->spec->step_count) {
        stop = pods_of(walk->spec->steps[walk->next++], walk->replicas);
        if (stop <= walk->stop)
            stop = (int64_t)walk->stop + 1;
    } else {
        stop = walk->replicas;
    }
    walk->stop = stop < walk->replicas ? (int32_t)stop : walk->replicas;
    walk->step++;
    return true;
}

int32_t step_stop_count(const struct step_spec *spec, int32_t replicas)
{
    struct walk walk = {.spec = spec, .replicas = replicas};

    if (!spec->steps) { /* there may be as many as there are Pods */
        int32_t size = pods_of(spec->step_size, replicas);
        size = size > 1 ? size : 1;
        return replicas > 0 ? (int32_t)(((int64_t)replicas + size - 1) / size) : 1;
    }
    while (walk_on(&walk))
        ;
    return walk.step;
}

int32_t step_stop(const struct step_spec *spec, int32_t replicas, int32_t step)
{
    struct walk walk = {.spec = spec, .replicas = replicas};

    if (step < 1)
        return 0;
    if (!spec->steps) {
        int64_t size = pods_of(spec->step_size, replicas);
        int64_t stop = (size > 1 ? size : 1) * step;
        return stop < replicas ? (int32_t)stop : replicas;
    }
    while (walk.step < step && walk_on(&walk))
        ;
    return walk.stop;
}

int32_t step_of(const struct step_spec *spec, int32_t replicas, int32_t updated)
{
    struct walk walk = {.spec = spec, .replicas = replicas};

    if (!spec->steps) {
        int32_t size = pods_of(spec->step_size, replicas);
        int32_t count = step_stop_count(spec, replicas);
        size = size > 1 ? size : 1;
        int32_t step = (int32_t)(((int64_t)updated + size - 1) / size);
        return step < 1 ? 1 : step < count ? step : count;
    }
    while (walk_on(&walk) && walk.stop < updated)
        ;
    return walk.step;
}
