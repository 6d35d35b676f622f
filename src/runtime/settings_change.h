/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between settings that are read one after the other, and which of it holds at once:
 * one table says it of every key.
 */
#ifndef SW_RUNTIME_SETTINGS_CHANGE_H
#define SW_RUNTIME_SETTINGS_CHANGE_H

#include <stdbool.h>

struct sw_buf;
struct sw_settings;

/* Copies from `read` into `in_force` what holds at once, and appends the keys that were different:
 * "log.level, client.qps". Only numbers: no string of `read` is borrowed. */
void sw_settings_take_over(struct sw_settings *in_force, const struct sw_settings *read,
                           struct sw_buf *keys);
/* Appends the keys that differ from what is in force and hold only after a restart, but for those
 * that were the same in `before`, which was read before and has been told of. */
void sw_settings_list_waiting(const struct sw_settings *in_force, const struct sw_settings *before,
                              const struct sw_settings *read, struct sw_buf *keys);
/* Other modules are asked for, or they lie elsewhere. */
bool sw_settings_name_other_modules(const struct sw_settings *a, const struct sw_settings *b);
/* Appends "KEY", with a comma before it unless it is the first. */
void sw_settings_add_key(struct sw_buf *keys, const char *key);

#endif
