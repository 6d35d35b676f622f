/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bite is chosen in two stages. The rule proposes one: raise the target while it stays below the
 * largest new one, else take from a new one. What the controller would make of it is computed; a
 * proposal is taken if it leads back, keeps the floor, and gives the failed template no Pods more.
 * Where it does not, all single bites are tried in the mind and the best is taken. Against a model
 * of the controller, with every start of two to four ReplicaSets up to ten replicas, this always
 * ends, and costs at most one Pod below the floor, where a tie has to be crossed with a bite of
 * one; two where Pods fail and the controller fills up nothing but those. What fails does not count
 * as available.
 *
 * A bite leads back if the target is not smaller afterwards, the template's ReplicaSet does not
 * come to exactly `replicas` while others have Pods (it would count as complete, and the controller
 * would empty the others), and the new ones have fewer Pods, or as many in fewer, larger heaps.
 */
#include "retreat.h"

#include <string.h>

#define ROUNDS_MAX 64 /* of the controller until nothing changes; three are seen */

struct field {
    const struct step_size *sizes;
    size_t count;
    size_t target, template_;
    int32_t replicas, surge, unavailable;
    int32_t bite; /* most Pods at once */
};

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* ---- the controller ---- */

static size_t active_of(const int32_t *wanted, size_t count, size_t *ret_last)
{
    size_t active = 0;

    for (size_t i = 0; i < count; i++)
        if (wanted[i] > 0) {
            active++;
            *ret_last = i;
        }
    return active;
}

static size_t largest(const int32_t *wanted, size_t count, bool newest)
{
    size_t found = 0;

    for (size_t i = 1; i < count; i++)
        if (wanted[i] > wanted[found] || (newest && wanted[i] == wanted[found]))
            found = i;
    return found;
}

/* One look of the controller. lowest: of each the fewest Pods that were there all the time. */
static bool look(const struct field *field, int32_t *wanted, int32_t *lowest)
{
    size_t last = field->template_;
    size_t active = active_of(wanted, field->count, &last);
    int32_t before[STEP_SIZES_MAX];

    memcpy(before, wanted, field->count * sizeof *wanted);
    if (active <= 1) {
        wanted[last] = field->replicas;
    } else if (wanted[field->template_] == field->replicas &&
               lowest[field->template_] == field->replicas) {
        for (size_t i = 0; i < field->count; i++)
            if (i != field->template_)
                wanted[i] = 0;
    } else {
        int64_t missing = field->replicas > 0 ? (int64_t)field->replicas + field->surge : 0;
        for (size_t i = 0; i < field->count; i++)
            missing -= wanted[i];
        size_t which = largest(wanted, field->count, missing > 0);
        int64_t size = wanted[which] + missing;
        wanted[which] = size > 0 ? (int32_t)size : 0;
    }
    for (size_t i = 0; i < field->count; i++)
        lowest[i] = least(lowest[i], wanted[i]);
    return memcmp(before, wanted, field->count * sizeof *wanted) != 0;
}

static void settle(const struct field *field, int32_t *wanted, int32_t *lowest)
{
    for (int i = 0; i < ROUNDS_MAX && look(field, wanted, lowest); i++)
        ;
}

/* ---- what a bite is worth ---- */

struct worth {
    int32_t shortfall; /* Pods below the floor, or below what is available now if that is less */
    int32_t growth;    /* Pods of the failed template that the controller adds over it */
    int64_t new_pods;
    int64_t squares; /* of the new ones' sizes: fewer and larger heaps are nearer to the end */
};

static int compare(const struct worth *a, const struct worth *b)
{
    if (a->shortfall != b->shortfall)
        return a->shortfall < b->shortfall ? -1 : 1;
    if (a->growth != b->growth)
        return a->growth < b->growth ? -1 : 1;
    if (a->new_pods != b->new_pods)
        return a->new_pods < b->new_pods ? -1 : 1;
    return (a->squares < b->squares) - (a->squares > b->squares);
}

static struct worth potential(const struct field *field, const int32_t *wanted)
{
    struct worth worth = {0, 0, 0, 0};

    for (size_t i = 0; i < field->count; i++)
        if (i != field->target) {
            worth.new_pods += wanted[i];
            worth.squares += (int64_t)wanted[i] * wanted[i];
        }
    return worth;
}

static bool looks_complete(const struct field *field, const int32_t *wanted)
{
    size_t last;

    return active_of(wanted, field->count, &last) > 1 &&
           wanted[field->template_] == field->replicas;
}

/* Of Pods that are to go, a ReplicaSet's controller takes first those that are not available. */
static int32_t shortfall(const struct field *field, const int32_t *now, const int32_t *lowest)
{
    int64_t available = 0, left = 0;

    for (size_t i = 0; i < field->count; i++) {
        available += least(now[i], field->sizes[i].available);
        left += least(lowest[i], field->sizes[i].available);
    }
    int64_t floor = (int64_t)field->replicas - field->unavailable;
    floor = floor < available ? floor : available;
    return floor > left ? (int32_t)(floor - left) : 0;
}

/* Whether it leads back, and what it is worth. */
static bool judge(const struct field *field, const struct step_bite *bite, struct worth *ret_worth)
{
    int32_t now[STEP_SIZES_MAX] = {0}, wanted[STEP_SIZES_MAX] = {0};
    int32_t lowest[STEP_SIZES_MAX] = {0};
    size_t last;

    for (size_t i = 0; i < field->count; i++)
        now[i] = wanted[i] = lowest[i] = field->sizes[i].wanted;
    struct worth before = potential(field, now);
    wanted[bite->which] = bite->size;
    lowest[bite->which] = least(lowest[bite->which], bite->size);
    bool is_bad = looks_complete(field, wanted);
    settle(field, wanted, lowest);
    if (is_bad || looks_complete(field, wanted))
        return false;
    if (wanted[field->target] < now[field->target] && active_of(wanted, field->count, &last) != 1)
        return false;
    if (wanted[field->target] < 1)
        return false;
    *ret_worth = potential(field, wanted);
    if (compare(ret_worth, &before) >= 0)
        return false;
    ret_worth->shortfall = shortfall(field, now, lowest);
    int32_t growth = wanted[field->template_] - now[field->template_];
    ret_worth->growth = growth > 0 ? growth : 0;
    return true;
}

/* ---- which one ---- */

static struct step_bite propose(const struct field *field)
{
    const struct step_size *sizes = field->sizes;
    int32_t own = sizes[field->target].wanted;
    size_t large = SIZE_MAX, young = SIZE_MAX;

    for (size_t i = 0; i < field->count; i++) {
        if (i == field->target || sizes[i].wanted == 0)
            continue;
        young = i;
        if (large == SIZE_MAX || sizes[i].wanted >= sizes[large].wanted)
            large = i;
    }
    if (own + field->bite < sizes[large].wanted)
        return (struct step_bite){field->target, own + field->bite};
    size_t which = sizes[large].wanted >= own ? large : young;
    int32_t size = sizes[which].wanted - least(sizes[which].wanted, field->bite);
    return (struct step_bite){which, size >= own ? own - 1 : size};
}

struct best {
    struct step_bite bite;
    struct worth worth;
    bool is_found;
};

static void consider(const struct field *field, size_t which, int32_t size, struct best *best)
{
    struct step_bite bite = {which, size};
    struct worth worth;

    if (!judge(field, &bite, &worth))
        return;
    if (!best->is_found || compare(&worth, &best->worth) < 0)
        *best = (struct best){bite, worth, true};
}

static void search(const struct field *field, struct best *best)
{
    int32_t own = field->sizes[field->target].wanted;

    for (int32_t by = 1; by <= field->bite; by++)
        consider(field, field->target, own + by, best);
    for (size_t i = 0; i < field->count; i++) {
        int32_t size = field->sizes[i].wanted;
        if (i == field->target || size == 0)
            continue;
        for (int32_t by = 1; by <= least(field->bite, size); by++)
            consider(field, i, size - by, best);
        if (own - 1 < size)
            consider(field, i, own - 1, best);
        consider(field, i, 0, best);
    }
}

static bool choose(const struct field *field, struct step_bite *ret_bite)
{
    struct step_bite first = propose(field);
    struct best best = {.is_found = false};
    struct worth worth;
    bool leads_back = judge(field, &first, &worth);

    if (leads_back && worth.shortfall == 0 && worth.growth == 0) {
        *ret_bite = first;
        return true;
    }
    search(field, &best);
    if (leads_back && (!best.is_found || (worth.shortfall <= best.worth.shortfall &&
                                          worth.growth <= best.worth.growth)))
        best = (struct best){first, worth, true};
    *ret_bite = best.bite;
    return best.is_found;
}

static struct field field_of(const struct step_size *sizes, size_t count, int32_t replicas,
                             int32_t surge, int32_t unavailable)
{
    struct field field = {sizes, count, 0, 0, replicas, surge, unavailable, surge + unavailable};

    if (field.bite < 1)
        field.bite = 1;
    for (size_t i = 0; i < count; i++) {
        if (sizes[i].is_target)
            field.target = i;
        if (sizes[i].is_template)
            field.template_ = i;
    }
    return field;
}

enum step_retreat step_retreat(const struct step_size *sizes, size_t count, int32_t replicas,
                               int32_t surge, int32_t unavailable, struct step_bite *ret_bite)
{
    struct field field = field_of(sizes, count, replicas, surge, unavailable);
    const struct step_size *target = &sizes[field.target], *template_ = &sizes[field.template_];
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += sizes[i].wanted;
    bool is_alone = sum == target->wanted;
    if (is_alone && target->wanted == replicas)
        return target->available >= target->wanted ? STEP_RETREAT_DONE : STEP_RETREAT_WAIT;
    if (target->wanted < 1)
        return STEP_RETREAT_IMPOSSIBLE;
    if (!is_alone && template_->wanted == replicas && template_->available >= replicas)
        return STEP_RETREAT_IMPOSSIBLE;
    if (is_alone || sum != (int64_t)replicas + surge || target->available < target->wanted)
        return STEP_RETREAT_WAIT;
    return choose(&field, ret_bite) ? STEP_RETREAT_BITE : STEP_RETREAT_IMPOSSIBLE;
}

void step_retreat_predict(const struct step_size *sizes, size_t count, int32_t replicas,
                          int32_t surge, const struct step_bite *bite, int32_t *ret_wanted)
{
    struct field field = field_of(sizes, count, replicas, surge, 0);
    int32_t lowest[STEP_SIZES_MAX];

    for (size_t i = 0; i < count; i++)
        ret_wanted[i] = lowest[i] = sizes[i].wanted;
    ret_wanted[bite->which] = bite->size;
    lowest[bite->which] = least(lowest[bite->which], bite->size);
    settle(&field, ret_wanted, lowest);
}
