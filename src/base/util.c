/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that does not return NULL, and assertions that stay. Running out of memory is not an error
 * that travels: the process ends, Kubernetes starts another, and all lasting state is in the API
 * server anyway.
 */
#include "base/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void die_of_memory(size_t count, size_t size)
{
    fprintf(stderr, "slipway: out of memory (%zu times %zu bytes)\n", count, size);
    abort();
}

void *sw_malloc(size_t size)
{
    return sw_calloc(1, size);
}

void *sw_calloc(size_t count, size_t size)
{
    /* calloc(0) may answer NULL, which would look like a failure. */
    size_t bytes;
    bool is_too_large = __builtin_mul_overflow(count, size, &bytes);
    void *memory = is_too_large ? NULL : calloc(1, bytes ? bytes : 1);
    if (!memory) {
        die_of_memory(count, size);
    }
    return memory;
}

void *sw_realloc(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        die_of_memory(count, size);
    }
    void *memory = realloc(old, bytes ? bytes : 1);
    if (!memory) {
        die_of_memory(count, size);
    }
    return memory;
}

char *sw_strdup(const char *text)
{
    return sw_strndup(text, strlen(text));
}

char *sw_strndup(const char *text, size_t len)
{
    if (len == SIZE_MAX) {
        die_of_memory(1, len);
    }
    char *copy = malloc(len + 1);
    if (!copy) {
        die_of_memory(1, len + 1);
    }
    if (len > 0) {
        memcpy(copy, text, len);
    }
    copy[len] = '\0';
    return copy;
}

char *sw_asprintf(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0 || !text) {
        die_of_memory(1, strlen(format));
    }
    return text;
}

void *sw_free(void *memory)
{
    free(memory);
    return NULL;
}

void *sw_free_secret(void *memory, size_t size)
{
    if (memory) {
        explicit_bzero(memory, size);
        free(memory);
    }
    return NULL;
}

void *sw_free_secret_text(char *text)
{
    return sw_free_secret(text, text ? strlen(text) : 0);
}

void sw_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "slipway: %s:%d: broken: %s\n", file, line, condition);
    abort();
}
