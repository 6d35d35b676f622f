/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules that the settings ask for: found, put in order, each with its configuration.
 */
#ifndef SW_RUNTIME_MODULE_SET_H
#define SW_RUNTIME_MODULE_SET_H

#include <stdbool.h>
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
/* The configurations that the files now hold for the modules of the set, in its order (*ret_configs
 * is freed with sw_module_set_free_configs); the set stays as it is. are_others: the settings name
 * other modules, or another folder of modules, than those that the set was loaded with. Then these
 * are looked at as well, because they would not start. */
int sw_module_set_read(const struct sw_module_set *set, const struct sw_settings *settings,
                       bool are_others, void ***ret_configs, struct sw_error *error);
/* Each of them, and the array; NULLs are passed over. Returns NULL. */
void **sw_module_set_free_configs(const struct sw_module_set *set, void **configs);
void sw_module_set_done(struct sw_module_set *set);

#endif
