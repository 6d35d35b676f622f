/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that nobody may touch for now: AddressSanitizer reports who does; without it these do
 * nothing.
 */
#ifndef SW_BASE_POISON_H
#define SW_BASE_POISON_H

#if defined(__SANITIZE_ADDRESS__)
#define SW_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SW_HAS_ASAN 1
#endif
#endif
#ifdef SW_HAS_ASAN
#include <sanitizer/asan_interface.h>
#else
#define SW_HAS_ASAN 0
#define ASAN_POISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#endif

#endif
