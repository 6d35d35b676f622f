/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of tests/data/kube: objects, reviews, a list and a watch as an API server prints
 * them.
 */
#ifndef TESTS_UNIT_KUBE_DOCUMENTS_H
#define TESTS_UNIT_KUBE_DOCUMENTS_H

#include "test.h"

struct document {
    char *text;
    size_t len;
};

static inline struct document document_read(const char *name)
{
    struct document document = {.text = malloc(1 << 17)};
    char path[1024];
    assert_non_null(document.text);
    snprintf(path, sizeof(path), TEST_DATA "/%s", name);
    FILE *file = fopen(path, "rbe");
    if (!file) {
        fail_msg("%s cannot be opened", path);
    }
    document.len = fread(document.text, 1, (1 << 17) - 1, file);
    document.text[document.len] = 0;
    fclose(file);
    return document;
}

static inline void document_done(struct document *document)
{
    free(document->text);
}

/* New memory of just that size, so that a sanitizer sees the byte too far. */
static inline char *exact_copy(const char *bytes, size_t len)
{
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    return copy;
}

#endif
