/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules that the settings ask for: found, put in order, each with its configuration.
 */
#ifndef SW_RUNTIME_MODULE_SET_H
#define SW_RUNTIME_MODULE_SET_H

#include <stddef.h>

struct sw_error;
struct sw_module;
struct sw_settings;

/* Lives inside another struct; zeroed memory is empty. */
struct sw_module_set {
    char *dir;
    const struct sw_module **modules; /* in the order of their start */
    void **configs;                   /* of each; NULL: it has none */
    size_t count;
};

/* The first mistake, with its file; then the set is empty. */
int sw_module_set_load(struct sw_module_set *set, const struct sw_settings *settings,
                       struct sw_error *error);
void sw_module_set_done(struct sw_module_set *set);

#endif
