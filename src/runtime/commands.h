/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What slipway does instead of running: each prints and returns the exit status (process.h).
 */
#ifndef SW_RUNTIME_COMMANDS_H
#define SW_RUNTIME_COMMANDS_H

struct sw_arguments;
struct sw_settings;

int sw_command_check_config(const struct sw_settings *settings);
int sw_command_list_modules(const struct sw_settings *settings);
int sw_command_release_all(const struct sw_arguments *arguments,
                           const struct sw_settings *settings);

#endif
