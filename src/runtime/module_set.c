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

static int load_configs(const struct sw_module_set *set, const char *folder, void ***ret_configs,
                        struct sw_error *error)
{
    void **configs = sw_calloc(set->count, sizeof(void *));
    int code = 0;

    for (size_t i = 0; i < set->count && !code; i++)
        code = sw_module_config_load(folder, set->modules[i], &configs[i], error);
    if (code)
        sw_module_set_free_configs(set, configs);
    else
        *ret_configs = configs;
    return code;
}

/* Also of those that do not run. */
static int check_names(const struct sw_module_set *set, const char *folder, struct sw_error *error)
{
    return sw_module_config_check_names(folder, set->dir, error);
}

int sw_module_set_load(struct sw_module_set *set, const struct sw_settings *settings,
                       struct sw_error *error)
{
    SW_AUTO(char, sw_free) folder = sw_settings_module_folder(settings);
    int code;

    *set = (struct sw_module_set){0};
    set->dir = settings->module_dir ? sw_strdup(settings->module_dir) : sw_module_default_dir();
    code = settings->module_count ? add_asked_for(set, settings, error) : add_usual(set, error);
    if (!code)
        code = order(set, settings, error);
    if (!code)
        code = check_names(set, folder, error);
    if (!code)
        code = load_configs(set, folder, &set->configs, error);
    if (code)
        sw_module_set_done(set);
    return code;
}

static int look_at_others(const struct sw_settings *settings, struct sw_error *error)
{
    struct sw_module_set others;
    int code = sw_module_set_load(&others, settings, error);

    if (!code)
        sw_module_set_done(&others);
    return code;
}

int sw_module_set_read(const struct sw_module_set *set, const struct sw_settings *settings,
                       bool are_others, void ***ret_configs, struct sw_error *error)
{
    SW_AUTO(char, sw_free) folder = sw_settings_module_folder(settings);
    int code = are_others ? look_at_others(settings, error) : check_names(set, folder, error);

    return code ? code : load_configs(set, folder, ret_configs, error);
}

void **sw_module_set_free_configs(const struct sw_module_set *set, void **configs)
{
    for (size_t i = 0; configs && i < set->count; i++)
        sw_module_config_free(set->modules[i], configs[i]);
    return sw_free(configs);
}

void sw_module_set_done(struct sw_module_set *set)
{
    sw_module_set_free_configs(set, set->configs);
    sw_free(set->modules);
    sw_free(set->dir);
    *set = (struct sw_module_set){0};
}
