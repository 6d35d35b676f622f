/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiler attributes that the other headers use. Part of the vocabulary: attr.h, memory.h,
 * arena.h, field.h and json.h depend on nothing, mean the same in the core and in a module, and are
 * therefore the only headers of this folder that every layer may include. src/base implements them.
 */
#ifndef SLIPWAY_ATTR_H
#define SLIPWAY_ATTR_H

/* What a module exports, and what the executable exports to modules. All else is hidden. */
#define SW_API __attribute__((visibility("default")))

#define SW_PRINTF(string, first) __attribute__((format(printf, string, first)))
#define SW_NONNULL __attribute__((returns_nonnull))
#define SW_MUST_USE __attribute__((warn_unused_result))

#endif
