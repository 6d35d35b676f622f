/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random JSON documents that mostly fit a kind's table: every type, sometimes another type, null or
 * nothing; members that are not bound; any order, any white space, escapes, keys that come twice.
 * The same seed makes the same document.
 */
#ifndef TESTS_UNIT_KUBE_GENERATE_H
#define TESTS_UNIT_KUBE_GENERATE_H

#include <stdint.h>

#include <slipway/kind.h>

#include "base/buf.h"

struct chance {
    uint64_t state;
};

uint64_t chance_next(struct chance *chance);
/* 0 to below - 1. */
unsigned chance_below(struct chance *chance, unsigned below);

/* Appends the text of one object to buf. */
void generate_object(struct chance *chance, const struct sw_kind *kind, struct sw_buf *buf);

#endif
