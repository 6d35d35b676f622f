/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing run of bytes with a limit that its owner sets. Lives inside another struct. The bytes
 * are always followed by a NUL that does not count, so text may be read as a C string.
 */
#ifndef SW_BASE_BUF_H
#define SW_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <slipway/attr.h>

struct sw_buf {
    char *bytes; /* never NULL: "" while empty */
    size_t len;
    size_t room;
    size_t limit_bytes;
    bool is_secret; /* set by its owner after init: memory is overwritten before it is given back,
                       also when it grows */
};

/* limit_bytes: an append beyond it fails with -ENOBUFS and adds nothing. SIZE_MAX: none. */
void sw_buf_init(struct sw_buf *buf, size_t limit_bytes);
void sw_buf_done(struct sw_buf *buf);
void sw_buf_clear(struct sw_buf *buf); /* keeps the memory */

int sw_buf_append(struct sw_buf *buf, const void *bytes, size_t len);
int sw_buf_puts(struct sw_buf *buf, const char *text);
SW_PRINTF(2, 3) int sw_buf_printf(struct sw_buf *buf, const char *format, ...);
SW_PRINTF(2, 0) int sw_buf_vprintf(struct sw_buf *buf, const char *format, va_list args);
/* Makes room for len more bytes at bytes + len; *ret_space points there. They count once they were
 * committed. */
int sw_buf_reserve(struct sw_buf *buf, size_t len, char **ret_space);
/* Counts the first len bytes of what was reserved and written, and puts the NUL behind them. */
void sw_buf_commit(struct sw_buf *buf, size_t len);
/* Drops the first len bytes. */
void sw_buf_consume(struct sw_buf *buf, size_t len);
/* The bytes as new memory (the caller frees); the buffer is empty afterwards. */
SW_NONNULL char *sw_buf_steal(struct sw_buf *buf);

#endif
