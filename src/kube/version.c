/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two resource versions is newer. They are opaque, but on API servers of today those of
 * one kind are decimal and only grow; of decimal numbers the longer one is the greater.
 */
#include <string.h>

#include "kube/store.h"

static bool is_decimal(const char *version, size_t len)
{
    return len > 0 && strspn(version, "0123456789") == len && (version[0] != '0' || len == 1);
}

int sw_version_compare(const char *a, const char *b, bool *ret_is_known)
{
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    *ret_is_known = is_decimal(a, a_len) && is_decimal(b, b_len);
    if (!*ret_is_known) {
        return 0;
    }
    return a_len != b_len ? (a_len > b_len ? 1 : -1) : strcmp(a, b);
}
