/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 (RFC 3629): what is a character and what is not.
 */
#ifndef SW_BASE_UTF8_H
#define SW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* What to write in the place of bytes that are no character: U+FFFD. */
#define SW_UTF8_REPLACEMENT "\xef\xbf\xbd"

/* The length of the character that text begins with, 1 to 4. 0 where it is none; then *ret_skip is
 * how many bytes to replace by one U+FFFD (the maximal part of a character, Unicode 15.0 section
 * 3.9). len is at least 1; ret_skip may be NULL. */
size_t sw_utf8_length(const char *text, size_t len, size_t *ret_skip);
bool sw_utf8_is_valid(const char *text, size_t len);
/* A copy with U+FFFD in the place of what is no character (the caller frees it); NULL where nothing
 * is wrong. */
char *sw_utf8_repair(const char *text, size_t len);

#endif
