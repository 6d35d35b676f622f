/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latest changes in a ring, as the watch cache keeps them. What falls out of it, or is
 * compacted away, makes watches from before it fail with 410.
 */
#include <errno.h>

#include "base/util.h"
#include "store_internal.h"

void sw_sim_window_init(struct sw_sim_window *window, size_t room, uint64_t floor)
{
    *window = (struct sw_sim_window){
        .ring = sw_calloc(SW_MAX(room, 1), sizeof(struct sw_sim_change)),
        .room = SW_MAX(room, 1),
        .floor = floor,
    };
}

const struct sw_sim_change *sw_sim_window_at(const struct sw_sim_window *window, size_t number)
{
    return &window->ring[(window->first + number) % window->room];
}

/* What a change keeps, as text. Of a window that is bounded by it, texts are made when the change
 * comes in: most of them are wanted by a watcher or for an answer anyway. */
static size_t bytes_of(const struct sw_sim_change *change)
{
    size_t now = 0, before = 0;
    sw_sim_object_text(change->object, &now);
    if (change->before) {
        sw_sim_object_text(change->before, &before);
    }
    return now + before;
}

static void forget_first(struct sw_sim_window *window)
{
    struct sw_sim_change *change = &window->ring[window->first];
    window->floor = change->version;
    if (window->bytes_max) {
        window->bytes -= bytes_of(change);
    }
    sw_sim_object_unref(change->object);
    sw_sim_object_unref(change->before);
    window->first = (window->first + 1) % window->room;
    window->count--;
}

void sw_sim_window_done(struct sw_sim_window *window)
{
    while (window->count) {
        forget_first(window);
    }
    sw_free(window->ring);
}

void sw_sim_window_add(struct sw_sim_window *window, const struct sw_sim_change *change)
{
    if (window->count == window->room) {
        forget_first(window);
    }
    struct sw_sim_change *place = &window->ring[(window->first + window->count) % window->room];
    *place = *change;
    sw_sim_object_ref(place->object);
    if (place->before) {
        sw_sim_object_ref(place->before);
    }
    window->count++;
    if (window->bytes_max) {
        window->bytes += bytes_of(change);
    }
    while (window->bytes > window->bytes_max) {
        forget_first(window);
    }
}

void sw_sim_window_forget(struct sw_sim_window *window, uint64_t upto)
{
    while (window->count && sw_sim_window_at(window, 0)->version <= upto) {
        forget_first(window);
    }
    window->floor = SW_MAX(window->floor, upto);
}

size_t sw_sim_window_behind(const struct sw_sim_window *window, uint64_t version)
{
    size_t low = 0;
    size_t high = window->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sw_sim_window_at(window, middle)->version <= version) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
