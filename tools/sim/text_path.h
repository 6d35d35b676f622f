/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One member of a JSON text without reading the rest of it into memory. The text is one that
 * jansson has written (JSON_COMPACT): well-formed, and without spaces between its parts.
 */
#ifndef TOOLS_SIM_TEXT_PATH_H
#define TOOLS_SIM_TEXT_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* path: names of members with dots between, none of which needs an escape in JSON. The value's text
 * goes to *ret_value, borrowed from text. False where there is none. */
bool sw_sim_text_path(const char *text, size_t len, const char *path, const char **ret_value,
                      size_t *ret_len);

#endif
