/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of up to LARGEST bytes are rounded up to a multiple of STEP, cut from blocks, and kept in
 * a list of their size when they are freed. In front of each stands the number of its size; a
 * larger one has 0 there and is the system's.
 */
#include "pool.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/poison.h"
#include "base/util.h"

enum {
    STEP = 16,
    LARGEST = 512,
    SIZES = LARGEST / STEP + 1,
    BLOCK = 256 * 1024,
};

/* What jansson gets begins at next: it has nothing that must stand at more than a multiple of 8. */
struct piece {
    uint64_t size; /* in steps, with this; 0: the system's */
    struct piece *next;
};

/* jansson passes no argument along. */
static struct piece *free_pieces[SIZES];
static char *block;
static size_t block_left;

enum { HEAD = offsetof(struct piece, next) };

static void *get(size_t bytes)
{
    size_t steps = (bytes + HEAD + STEP - 1) / STEP;
    struct piece *piece;
    if (steps >= SIZES) {
        piece = sw_malloc(bytes + HEAD);
        steps = 0;
    } else if (free_pieces[steps]) {
        piece = free_pieces[steps];
        free_pieces[steps] = piece->next;
    } else {
        size_t size = steps * STEP;
        if (block_left < size) {
            block = sw_malloc(BLOCK); /* what is left of the last one is lost: below LARGEST */
            block_left = BLOCK;
        }
        piece = (void *)block;
        block += size;
        block_left -= size;
    }
    piece->size = steps;
    return (char *)piece + HEAD;
}

static void put(void *bytes)
{
    if (!bytes) {
        return;
    }
    struct piece *piece = (void *)((char *)bytes - HEAD);
    if (piece->size == 0) {
        sw_free(piece);
        return;
    }
    piece->next = free_pieces[piece->size];
    free_pieces[piece->size] = piece;
}

void sw_sim_pool_use(void)
{
    if (!SW_HAS_ASAN) {
        json_set_alloc_funcs(get, put);
    }
}
