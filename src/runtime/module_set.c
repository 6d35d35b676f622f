/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the key `modules` to descriptors and configurations.
 */
#include "runtime/module_set.h"

#include <errno.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "base/util.h"
#include "runtime/module_loader.h"
#include "runtime/settings.h"

static const char *const usual[] = {"coordination", "pausing", "events"};

static int add(struct sw_module_set *set, const char *name, struct sw_error *error)
{
    const struct sw_module *module;
    int code = sw_module_find(set->dir, name, &module, error);

    if (code)
        return code;
    for (size_t i = 0; i < set->count; i++)
        if (set->modules[i] == module)
            return sw_error_set(error, -EEXIST, "module %s is named twice", name);
    set->modules = sw_realloc(set->modules, set->count + 1, sizeof(struct sw_module *));
    set->modules[set->count++] = module;
    return 0;
}

static int add_asked_for(struct sw_module_set *set, const struct sw_settings *settings,
                         struct sw_error *error)
{
    for (size_t i = 0; i < settings->module_count; i++) {
        int code = add(set, settings->modules[i], error);
        if (code) {
            SW_AUTO(char, sw_free) key = sw_asprintf("modules[%zu]", i);
            sw_config_blame(settings->config_path, key, error);
            return code;
        }
    }
    return 0;
}

static int add_usual(struct sw_module_set *set, struct sw_error *error)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(usual); i++) {
        int code = add(set, usual[i], error);
        if (code && code != -ENOENT)
            return code;
    }
    if (set->count > 0)
        return 0;
    return sw_error_set(error, -ENOENT,
                        "there are no modules in %s: say with --module-dir where they are",
                        set->dir);
}

static int order(struct sw_module_set *set, const struct sw_settings *settings,
                 struct sw_error *error)
{
    int code = sw_module_order(set->modules, set->count, error);

    if (code && settings->module_count)
        sw_config_blame(settings->config_path, "modules", error);
    return code;
}

static int load_configs(struct sw_module_set *set, const struct sw_settings *settings,
                        struct sw_error *error)
{
    SW_AUTO(char, sw_free) folder = sw_settings_module_folder(settings);
    int code = sw_module_config_check_names(folder, set->dir, error);

    set->configs = sw_calloc(set->count, sizeof(void *));
    for (size_t i = 0; i < set->count && !code; i++)
        code = sw_module_config_load(folder, set->modules[i], &set->configs[i], error);
    return code;
}

int sw_module_set_load(struct sw_module_set *set, const struct sw_settings *settings,
                       struct sw_error *error)
{
    int code;

    *set = (struct sw_module_set){0};
    set->dir = settings->module_dir ? sw_strdup(settings->module_dir) : sw_module_default_dir();
    code = settings->module_count ? add_asked_for(set, settings, error) : add_usual(set, error);
    if (!code)
        code = order(set, settings, error);
    if (!code)
        code = load_configs(set, settings, error);
    if (code)
        sw_module_set_done(set);
    return code;
}

void sw_module_set_done(struct sw_module_set *set)
{
    for (size_t i = 0; set->configs && i < set->count; i++)
        sw_module_config_free(set->modules[i], set->configs[i]);
    sw_free(set->configs);
    sw_free(set->modules);
    sw_free(set->dir);
    *set = (struct sw_module_set){0};
}
