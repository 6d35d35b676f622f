/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration, read again while slipway runs: when a file of it changes (slipway.yaml, those
 * of modules.d), and when somebody asks. All of it is read and checked before anything is applied;
 * a mistake anywhere, or a module that refuses, leaves everything as it was, and is logged with the
 * words of --check-config.
 *
 * What is applied: modules get their new configuration by reconfigure (slipway/module.h), and of
 * slipway.yaml the keys that settings_change.c calls so. What needs a restart is named, once a
 * change. Flags win over the file as at the start.
 *
 * Besides, the log's level, which can be raised for a while.
 */
#ifndef SW_RUNTIME_RELOAD_H
#define SW_RUNTIME_RELOAD_H

struct sw_arguments;
struct sw_core;
struct sw_error;
struct sw_log;
struct sw_log_sink;
struct sw_loop;
struct sw_metrics;
struct sw_module_set;
struct sw_reload;
struct sw_settings;

struct sw_reload_options {
    const struct sw_arguments *arguments; /* flags */
    struct sw_settings *settings;         /* in force; what holds at once is changed in it */
    struct sw_module_set *modules; /* added to the core in this order, with its configs; these
                                      are replaced and freed as each module takes over */
    struct sw_core *core;
    struct sw_log_sink *sink; /* whose level is set */
};

/* Everything in the options is borrowed until close, and must be in force already. Watches from now
 * on; does not keep the loop alive. */
int sw_reload_open(struct sw_loop *loop, const struct sw_reload_options *options,
                   struct sw_metrics *metrics, const struct sw_log *log,
                   struct sw_reload **ret_reload, struct sw_error *error);
/* Nothing is read or applied any more. Takes NULL. */
void sw_reload_close(struct sw_reload *reload);

/* Reads it again, whether a change was seen or not. Blocks for small local files. Not from a
 * callback of a module. */
void sw_reload_now(struct sw_reload *reload);
/* Logs everything from now on; called again, what the configuration says. A line tells, whatever
 * the level. */
void sw_reload_toggle_debug(struct sw_reload *reload);

#endif
