/* SPDX-License-Identifier: Apache-2.0 */
/* Documents as text. */
#ifndef TOOLS_SIM_DUMP_H
#define TOOLS_SIM_DUMP_H

#include <jansson.h>
#include <stddef.h>

struct sw_buf;

/* Compact JSON. */
void sw_sim_dump(struct sw_buf *out, const json_t *value);
char *sw_sim_dump_text(const json_t *value, size_t *ret_len); /* the caller frees */
/* json_dumps with its flags, as memory for sw_free; NULL where it cannot be. (What json_dumps
 * itself returns is for the free of jansson's allocator.) */
char *sw_sim_dump_as(const json_t *value, size_t flags);

#endif
