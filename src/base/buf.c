/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing run of bytes with a limit. Grows by doubling, so that appending is linear in what was
 * appended; consuming from the front moves the rest, so whoever consumes often does it in one go.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

/* What bytes points to while nothing is allocated; nobody writes to it. */
static char no_bytes[1];

enum { FIRST_ROOM = 64 };

void sw_buf_init(struct sw_buf *buf, size_t limit_bytes)
{
    *buf = (struct sw_buf){.bytes = no_bytes, .limit_bytes = limit_bytes};
}

/* Empty, and of the same sort. */
static void forget(struct sw_buf *buf)
{
    bool is_secret = buf->is_secret;
    sw_buf_init(buf, buf->limit_bytes);
    buf->is_secret = is_secret;
}

void sw_buf_done(struct sw_buf *buf)
{
    if (buf->room && buf->is_secret) {
        sw_free_secret(buf->bytes, buf->room);
    } else if (buf->room) {
        sw_free(buf->bytes);
    }
    forget(buf);
}

void sw_buf_clear(struct sw_buf *buf)
{
    buf->len = 0;
    if (buf->room) {
        buf->bytes[0] = '\0';
    }
}

static void grow(struct sw_buf *buf, size_t room)
{
    if (buf->room && buf->is_secret) {
        char *bytes = sw_malloc(room);
        memcpy(bytes, buf->bytes, buf->len);
        sw_free_secret(buf->bytes, buf->room);
        buf->bytes = bytes;
    } else {
        buf->bytes = sw_realloc(buf->room ? buf->bytes : NULL, 1, room);
    }
    buf->room = room;
}

int sw_buf_reserve(struct sw_buf *buf, size_t len, char **ret_space)
{
    sw_assert(buf->len <= buf->limit_bytes);
    if (len > buf->limit_bytes - buf->len || len > SIZE_MAX / 2 - buf->len) {
        return -ENOBUFS;
    }
    size_t need = buf->len + len + 1; /* and the NUL */
    if (need > buf->room) {
        size_t room = SW_MAX(need, SW_MAX((size_t)FIRST_ROOM, buf->room * 2));
        /* Never beyond what the limit can fill: the limit is there to bound memory. */
        if (buf->limit_bytes < SIZE_MAX / 2) {
            room = SW_MIN(room, buf->limit_bytes + 1);
        }
        grow(buf, room);
        buf->bytes[buf->len] = '\0';
    }
    if (ret_space) {
        *ret_space = buf->bytes + buf->len;
    }
    return 0;
}

void sw_buf_commit(struct sw_buf *buf, size_t len)
{
    if (len == 0) {
        return;
    }
    sw_assert(buf->room > buf->len && len < buf->room - buf->len);
    buf->len += len;
    buf->bytes[buf->len] = '\0';
}

int sw_buf_append(struct sw_buf *buf, const void *bytes, size_t len)
{
    char *space;
    int rc = sw_buf_reserve(buf, len, &space);
    if (rc || len == 0) {
        return rc;
    }
    memcpy(space, bytes, len);
    sw_buf_commit(buf, len);
    return 0;
}

int sw_buf_puts(struct sw_buf *buf, const char *text)
{
    return sw_buf_append(buf, text, strlen(text));
}

int sw_buf_printf(struct sw_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = sw_buf_vprintf(buf, format, args);
    va_end(args);
    return rc;
}

int sw_buf_vprintf(struct sw_buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t room = buf->room ? buf->room - buf->len : 0;
    int len = vsnprintf(room ? buf->bytes + buf->len : NULL, room, format, args);
    int rc = len < 0 ? -EINVAL : 0;
    if (!rc && ((size_t)len >= room || (size_t)len > buf->limit_bytes - buf->len)) {
        char *space;
        rc = sw_buf_reserve(buf, (size_t)len, &space);
        if (!rc) {
            vsnprintf(space, (size_t)len + 1, format, again);
        }
    }
    va_end(again);
    if (!rc) {
        buf->len += (size_t)len;
    } else if (room) {
        buf->bytes[buf->len] = '\0'; /* what did not fit was printed halfway */
    }
    return rc;
}

void sw_buf_consume(struct sw_buf *buf, size_t len)
{
    sw_assert(len <= buf->len);
    if (len == 0) {
        return;
    }
    buf->len -= len;
    memmove(buf->bytes, buf->bytes + len, buf->len + 1);
}

char *sw_buf_steal(struct sw_buf *buf)
{
    char *bytes = buf->room ? buf->bytes : sw_strdup("");
    forget(buf);
    return bytes;
}
