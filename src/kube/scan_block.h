/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 16 or 64 bytes of JSON at a time: where in them are quotes, backslashes, brackets, control
 * characters. Bit i of a mask speaks of byte i. SSE2, which every x86-64 has, or whole words
 * elsewhere (and wherever SW_SCAN_PORTABLE is defined, so that the tests can run that way too);
 * the answers are the same.
 *
 * Only scan.c, span.c and their tests include this.
 */
#ifndef SW_KUBE_SCAN_BLOCK_H
#define SW_KUBE_SCAN_BLOCK_H

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(SW_SCAN_PORTABLE)
#define SW_SCAN_SSE2 1
#include <emmintrin.h>
#else
#define SW_SCAN_SSE2 0
#endif

enum { SW_BLOCK = 64 };

struct sw_block {
    uint64_t quote;
    uint64_t backslash;
    uint64_t control; /* below 0x20 */
    uint64_t open;    /* { and [ */
    uint64_t close;   /* } and ] */
    uint64_t curly;   /* among those: { and }; other bits mean nothing */
};

#if SW_SCAN_SSE2

static inline __m128i sw_block_load(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline uint64_t sw_block_bits(__m128i hits)
{
    return (uint64_t)(uint32_t)_mm_movemask_epi8(hits);
}

static inline __m128i sw_block_is(__m128i bytes, char c)
{
    return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c));
}

static inline __m128i sw_block_is_control(__m128i bytes)
{
    return _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
}

static inline __m128i sw_block_is_stop(__m128i bytes)
{
    return _mm_or_si128(_mm_or_si128(sw_block_is(bytes, '"'), sw_block_is(bytes, '\\')),
                        sw_block_is_control(bytes));
}

/* Quotes, backslashes and control characters of 16 bytes: where the plain part of a string ends. */
static inline uint32_t sw_stop16(const char *p)
{
    return (uint32_t)sw_block_bits(sw_block_is_stop(sw_block_load(p)));
}

/* The same, and bytes beyond ASCII. */
static inline uint32_t sw_stop16_ascii(const char *p)
{
    __m128i bytes = sw_block_load(p);
    return (uint32_t)sw_block_bits(_mm_or_si128(sw_block_is_stop(bytes), bytes));
}

static inline void sw_block_read(const char *p, struct sw_block *ret_block)
{
    struct sw_block b = {0};
    for (int i = 0; i < 4; i++) {
        __m128i bytes = sw_block_load(p + 16 * i);
        __m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20)); /* [ and { differ in that bit */
        b.quote |= sw_block_bits(sw_block_is(bytes, '"')) << (16 * i);
        b.backslash |= sw_block_bits(sw_block_is(bytes, '\\')) << (16 * i);
        b.control |= sw_block_bits(sw_block_is_control(bytes)) << (16 * i);
        b.open |= sw_block_bits(sw_block_is(lower, '{')) << (16 * i);
        b.close |= sw_block_bits(sw_block_is(lower, '}')) << (16 * i);
        b.curly |= sw_block_bits(_mm_slli_epi16(bytes, 2)) << (16 * i); /* bit 5 becomes bit 7 */
    }
    *ret_block = b;
}

#else

#define SW_BLOCK_ONES UINT64_C(0x0101010101010101)
#define SW_BLOCK_LOW7 UINT64_C(0x7f7f7f7f7f7f7f7f)

static inline uint64_t sw_block_load(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* 0x80 in each byte that is zero, 0 in the others; exact, no carry leaves a byte. */
static inline uint64_t sw_block_is_zero(uint64_t word)
{
    return ~(((word & SW_BLOCK_LOW7) + SW_BLOCK_LOW7) | word | SW_BLOCK_LOW7);
}

static inline uint64_t sw_block_is(uint64_t word, char c)
{
    return sw_block_is_zero(word ^ (SW_BLOCK_ONES * (unsigned char)c));
}

static inline uint64_t sw_block_is_control(uint64_t word)
{
    return sw_block_is_zero(word & (SW_BLOCK_ONES * 0xe0));
}

static inline uint64_t sw_block_is_stop(uint64_t word)
{
    return sw_block_is(word, '"') | sw_block_is(word, '\\') | sw_block_is_control(word);
}

/*
 * From the top bit of each byte to eight bits. With one bit 8i a byte, the factor 2^7 + 2^14 + ...
 * + 2^56 sends it to 8i + 7j; j = 8 - i lands at 56 + i, and since 8i + 7j = 8k + 7l has no other
 * solution for i, k < 8 and 1 <= j, l <= 8, no two bits meet and nothing carries.
 */
static inline uint64_t sw_block_bits(uint64_t hits)
{
    return ((hits >> 7 & SW_BLOCK_ONES) * UINT64_C(0x0102040810204080)) >> 56;
}

static inline uint32_t sw_stop16(const char *p)
{
    return (uint32_t)(sw_block_bits(sw_block_is_stop(sw_block_load(p))) |
                      sw_block_bits(sw_block_is_stop(sw_block_load(p + 8))) << 8);
}

static inline uint32_t sw_stop16_ascii(const char *p)
{
    uint64_t first = sw_block_load(p);
    uint64_t second = sw_block_load(p + 8);
    return (uint32_t)(sw_block_bits(sw_block_is_stop(first) | first) |
                      sw_block_bits(sw_block_is_stop(second) | second) << 8);
}

static inline void sw_block_read(const char *p, struct sw_block *ret_block)
{
    struct sw_block b = {0};
    for (int i = 0; i < 8; i++) {
        uint64_t word = sw_block_load(p + 8 * i);
        uint64_t lower = word | SW_BLOCK_ONES * 0x20;
        b.quote |= sw_block_bits(sw_block_is(word, '"')) << (8 * i);
        b.backslash |= sw_block_bits(sw_block_is(word, '\\')) << (8 * i);
        b.control |= sw_block_bits(sw_block_is_control(word)) << (8 * i);
        b.open |= sw_block_bits(sw_block_is(lower, '{')) << (8 * i);
        b.close |= sw_block_bits(sw_block_is(lower, '}')) << (8 * i);
        b.curly |= sw_block_bits((word & SW_BLOCK_ONES * 0x20) << 2) << (8 * i);
    }
    *ret_block = b;
}

#endif

/* Bit i: the parity of the bits 0 to i. Of unescaped quotes: from an opening one to before the
 * closing one. */
static inline uint64_t sw_block_parity(uint64_t bits)
{
    for (int shift = 1; shift < 64; shift *= 2) {
        bits ^= bits << shift;
    }
    return bits;
}

/*
 * The bytes that a backslash takes the meaning from. *carry: the byte before the block was such a
 * backslash; afterwards: so is the last of this one.
 */
static inline uint64_t sw_block_escaped(uint64_t backslash, uint64_t *carry)
{
    uint64_t escaped = *carry;
    backslash &= ~escaped;
    *carry = 0;
    while (backslash) {
        uint64_t first = backslash & (~backslash + 1);
        *carry = first >> 63;
        escaped |= first << 1;
        backslash &= ~(first | first << 1);
    }
    return escaped;
}

#endif
