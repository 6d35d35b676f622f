/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small things every file uses: memory that does not return NULL, assertions that stay, locals
 * that free themselves, and the way from a member back to its owner.
 */
#ifndef SW_BASE_UTIL_H
#define SW_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/attr.h>
#include <slipway/memory.h>

/* As sw_free, but overwrites the bytes first: for tokens and keys. */
void *sw_free_secret(void *memory, size_t size);
void *sw_free_secret_text(char *text);

/* Our own fault: prints the condition and where it stands, and aborts. Always compiled in. */
#define sw_assert(condition) \
    ((condition) ? (void)0 : sw_assert_failed(#condition, __FILE__, __LINE__))
_Noreturn void sw_assert_failed(const char *condition, const char *file, int line);

#define container_of(pointer, type, member) \
    ((type *)(void *)((char *)(1 ? (pointer) : &((type *)0)->member) - offsetof(type, member)))

#define SW_ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define SW_MIN(a, b) ((a) < (b) ? (a) : (b))
#define SW_MAX(a, b) ((a) > (b) ? (a) : (b))

/*
 * SW_AUTO(type, destructor) p = ...; calls destructor(p) when p goes out of scope. Hand over with
 * sw_steal(&p), which leaves NULL behind.
 */
#define SW_AUTO(type, destructor) __attribute__((cleanup(sw_auto_##destructor))) type *
#define SW_AUTO_DEFINE(type, destructor)                                      \
    static inline __attribute__((unused)) void sw_auto_##destructor(type **p) \
    {                                                                         \
        destructor(*p);                                                       \
    }
#define sw_steal(pp)                          \
    __extension__({                           \
        __typeof__(*(pp)) sw_stolen_ = *(pp); \
        *(pp) = NULL;                         \
        sw_stolen_;                           \
    })

SW_AUTO_DEFINE(char, sw_free)

/* A struct that travels as void * begins with a magic number; SW_CAST checks it. */
#define SW_MAGIC(a, b, c, d) \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))
#define SW_CAST(type, magic_number, pointer)                      \
    __extension__({                                               \
        type *sw_cast_ = (pointer);                               \
        sw_assert(sw_cast_ && sw_cast_->magic == (magic_number)); \
        sw_cast_;                                                 \
    })

#endif
