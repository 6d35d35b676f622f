/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of a kind in the order of their keys: blocks of sorted pointers. Finding is two
 * binary searches, inserting moves at most one block and the row of blocks.
 */
#include <string.h>

#include "base/util.h"
#include "store_internal.h"

void sw_sim_index_done(struct sw_sim_index *index)
{
    for (size_t i = 0; i < index->count; i++) {
        for (size_t k = 0; k < index->blocks[i]->count; k++) {
            sw_sim_object_unref(index->blocks[i]->at[k]);
        }
        sw_free(index->blocks[i]);
    }
    sw_free(index->blocks);
    *index = (struct sw_sim_index){0};
}

/* The last block whose first key is not above; 0 where there is none. */
static size_t block_of(const struct sw_sim_index *index, const char *key)
{
    size_t low = 0;
    size_t high = index->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(index->blocks[middle]->at[0]->key, key) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low ? low - 1 : 0;
}

bool sw_sim_index_find(const struct sw_sim_index *index, const char *key,
                       struct sw_sim_place *ret_place)
{
    *ret_place = (struct sw_sim_place){0};
    if (index->count == 0) {
        return false;
    }
    size_t number = block_of(index, key);
    const struct sw_sim_block *block = index->blocks[number];
    size_t low = 0;
    size_t high = block->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(block->at[middle]->key, key);
        if (order == 0) {
            *ret_place = (struct sw_sim_place){number, middle};
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *ret_place = (struct sw_sim_place){number, low};
    return false;
}

struct sw_sim_object *sw_sim_index_at(const struct sw_sim_index *index, struct sw_sim_place place)
{
    if (place.block < index->count && place.at >= index->blocks[place.block]->count) {
        place.block++;
        place.at = 0;
    }
    return place.block < index->count ? index->blocks[place.block]->at[place.at] : NULL;
}

struct sw_sim_object *sw_sim_index_next(const struct sw_sim_index *index,
                                        struct sw_sim_place *place)
{
    if (place->block < index->count && place->at >= index->blocks[place->block]->count) {
        place->block++;
        place->at = 0;
    }
    place->at++;
    return sw_sim_index_at(index, *place);
}

static void insert_block(struct sw_sim_index *index, size_t number, struct sw_sim_block *block)
{
    if (index->count == index->room) {
        index->room = index->room ? 2 * index->room : 8;
        index->blocks = sw_realloc(index->blocks, index->room, sizeof(*index->blocks));
    }
    memmove(index->blocks + number + 1, index->blocks + number,
            (index->count - number) * sizeof(*index->blocks));
    index->blocks[number] = block;
    index->count++;
}

/* Its upper half becomes a block of its own. */
static void split(struct sw_sim_index *index, size_t number)
{
    struct sw_sim_block *block = index->blocks[number];
    struct sw_sim_block *upper = SW_NEW(struct sw_sim_block);
    /* Names that grow come in at the end; then the lower block is left full. */
    size_t left = number + 1 == index->count ? block->count - 8 : block->count / 2;
    upper->count = block->count - left;
    memcpy(upper->at, block->at + left, upper->count * sizeof(*upper->at));
    block->count = left;
    insert_block(index, number + 1, upper);
}

struct sw_sim_object *sw_sim_index_set(struct sw_sim_index *index, struct sw_sim_object *object)
{
    struct sw_sim_place place;
    if (sw_sim_index_find(index, object->key, &place)) {
        struct sw_sim_object *before = index->blocks[place.block]->at[place.at];
        index->blocks[place.block]->at[place.at] = object;
        return before;
    }
    if (index->count == 0) {
        insert_block(index, 0, SW_NEW(struct sw_sim_block));
    }
    if (index->blocks[place.block]->count == SW_SIM_BLOCK) {
        split(index, place.block);
        if (place.at > index->blocks[place.block]->count) {
            place.at -= index->blocks[place.block]->count;
            place.block++;
        }
    }
    struct sw_sim_block *block = index->blocks[place.block];
    memmove(block->at + place.at + 1, block->at + place.at,
            (block->count - place.at) * sizeof(*block->at));
    block->at[place.at] = object;
    block->count++;
    index->objects++;
    return NULL;
}

struct sw_sim_object *sw_sim_index_remove(struct sw_sim_index *index, const char *key)
{
    struct sw_sim_place place;
    if (!sw_sim_index_find(index, key, &place)) {
        return NULL;
    }
    struct sw_sim_block *block = index->blocks[place.block];
    struct sw_sim_object *object = block->at[place.at];
    block->count--;
    memmove(block->at + place.at, block->at + place.at + 1,
            (block->count - place.at) * sizeof(*block->at));
    if (block->count == 0) {
        sw_free(block);
        index->count--;
        memmove(index->blocks + place.block, index->blocks + place.block + 1,
                (index->count - place.block) * sizeof(*index->blocks));
    }
    index->objects--;
    return object;
}
