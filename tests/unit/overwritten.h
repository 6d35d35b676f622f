/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was overwritten: explicit_bzero in the place of libc's, which notes how often the memory
 * that it is given held a certain text. In one file of a test's program.
 */
#ifndef TESTS_UNIT_OVERWRITTEN_H
#define TESTS_UNIT_OVERWRITTEN_H

#include <string.h>

static const char *overwritten_text; /* what is looked for; NULL: nothing */
static unsigned overwritten_count;   /* times that it was found */

void explicit_bzero(void *memory, size_t size);

void explicit_bzero(void *memory, size_t size)
{
    const void *before = memory;

    /* glibc declares that it does not read. */
    __asm__ volatile("" : "+r"(before) : : "memory");
    if (overwritten_text && memmem(before, size, overwritten_text, strlen(overwritten_text)))
        overwritten_count++;
    memset(memory, 0, size);
    __asm__ volatile("" : : "r"(memory) : "memory");
}

/* Under this name the hardened libc calls it. */
void __explicit_bzero_chk(void *memory, size_t size, size_t room);

void __explicit_bzero_chk(void *memory, size_t size, size_t room)
{
    (void)room;
    explicit_bzero(memory, size);
}

/* How often since the last time. */
static inline unsigned overwritten(void)
{
    unsigned count = overwritten_count;

    overwritten_count = 0;
    return count;
}

#endif
