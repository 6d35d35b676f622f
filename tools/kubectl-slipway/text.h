/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small texts for people: how long, how far, how wide. Pure.
 */
#ifndef KS_TEXT_H
#define KS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KS_DURATION_SIZE = 24,
    KS_BAR_CELLS = 10,
    KS_BAR_SIZE = 64,
};

/* As kubectl shows an age (k8s.io/apimachinery duration.HumanDuration): "45s", "3m12s", "95m",
 * "7h20m", "2d3h". Below zero, where two clocks differ: "0s". */
void ks_duration(int64_t us, char text[KS_DURATION_SIZE]);

/* "██████░░░░ 2/3", of KS_BAR_CELLS cells; in ASCII "######---- 2/3". A bar is full only where all
 * are done, and empty only where none is. of 0: "-". */
void ks_bar(int32_t done, int32_t of, bool is_utf8, char text[KS_BAR_SIZE]);

/* Columns that it takes on a terminal: characters, since none here is wide. */
size_t ks_width(const char *text);
/* How many bytes of it fit into so many columns; no character in part. */
size_t ks_fit(const char *text, size_t columns);

#endif
