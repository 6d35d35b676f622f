/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label selectors (metav1.LabelSelector). {} selects everything; an absent one selects nothing. In
 * and NotIn need values, Exists and DoesNotExist forbid them; NotIn and DoesNotExist match where
 * the key is missing. https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
 */
#ifndef SLIPWAY_SELECTOR_H
#define SLIPWAY_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <slipway/attr.h>
#include <slipway/object.h>

struct sw_selector;

/* From the JSON text of a LabelSelector. -EINVAL, and why (at least 256 bytes) says which key or
 * operator is wrong and what is allowed; null and an unknown member are refused too. The caller
 * frees it. */
SW_API SW_MUST_USE int sw_selector_parse(const char *json, size_t len,
                                         struct sw_selector **ret_selector, char *why,
                                         size_t why_size);
/* From the text form of a query: "a=b,c in (d,e),f notin (g),h,!i"; also == and !=. "": everything.
 */
SW_API SW_MUST_USE int sw_selector_parse_text(const char *text, struct sw_selector **ret_selector,
                                              char *why, size_t why_size);
SW_API struct sw_selector *
sw_selector_free(struct sw_selector *selector); /* takes NULL; returns NULL */
/* selector NULL: false. */
SW_API bool sw_selector_matches(const struct sw_selector *selector, const struct sw_labels *labels);
/* The text form, canonical: sorted by key. New memory, to be freed with free(). */
SW_API SW_NONNULL char *sw_selector_text(const struct sw_selector *selector);

#endif
