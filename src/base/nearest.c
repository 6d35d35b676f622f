/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distance of Damerau and Levenshtein in its simple form: how many letters have to be inserted,
 * removed, replaced, or swapped with their neighbour.
 */
#include "base/nearest.h"

#include <stdbool.h>

#include "base/util.h"

enum { MAX_WORD = 48 }; /* nobody mistypes a longer one into something we know */

static size_t simplify(const char *word, char letters[MAX_WORD])
{
    size_t len = 0;
    for (; *word && len < MAX_WORD; word++) {
        bool is_upper = *word >= 'A' && *word <= 'Z';
        if (*word != '-' && *word != '_') {
            letters[len++] = is_upper ? (char)(*word - 'A' + 'a') : *word;
        }
    }
    return len;
}

static size_t distance_of(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][MAX_WORD + 1];
    for (size_t j = 0; j <= b_len; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = SW_MIN(replaced, SW_MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = SW_MIN(row[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    return rows[a_len % 3][b_len];
}

void sw_nearest(const char *word, const char *candidate, const char **best, size_t *distance)
{
    char a[MAX_WORD] = {0};
    char b[MAX_WORD] = {0};
    size_t a_len = simplify(word, a);
    size_t b_len = simplify(candidate, b);
    size_t found = distance_of(a, a_len, b, b_len);
    /* Of two letters none may be wrong, of up to four one, of up to eight two, of more three. */
    size_t allowed = b_len <= 2 ? 0 : b_len <= 4 ? 1 : b_len <= 8 ? 2 : 3;
    if (found <= allowed && found < *distance) {
        *best = candidate;
        *distance = found;
    }
}
