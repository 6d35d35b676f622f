/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a decoder should have made of a text, worked out slowly from jansson's DOM. Used by unit
 * tests and fuzz targets.
 */
#ifndef TESTS_UNIT_KUBE_ORACLE_H
#define TESTS_UNIT_KUBE_ORACLE_H

#include <stddef.h>

#include <slipway/kind.h>

/*
 * object: what the decoder made; NULL: it refused the text. Returns NULL where that is right, else
 * words (static, until the next call). Where jansson refuses the text, either is right: what the
 * decoder skips it does not look at closely. Where a key comes twice, refusing is right too, since
 * the first of the two may be of the wrong type.
 */
const char *oracle_check(const struct sw_kind *kind, const char *text, size_t len,
                         const struct sw_object *object);

#endif
