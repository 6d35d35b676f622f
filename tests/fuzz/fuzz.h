/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fuzz target defines. libFuzzer calls it, and so does replay.c.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Always 0. Aborts where something is wrong beyond what the sanitizers see. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#endif
