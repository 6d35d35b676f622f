/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name to a descriptor that can be trusted as far as its head goes: number of the ABI, size
 * of the descriptor, name. Nothing else of a module is looked at before these fit.
 */
#include "runtime/module_loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/util.h"

enum { NAME_LIMIT = 63 };

/* ---- one module ---- */

/* It becomes part of a file name and of a symbol. */
static bool is_name(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len <= NAME_LIMIT && name[0] >= 'a' && name[0] <= 'z' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

static int check(const struct sw_module *module, const char *name, const char *path,
                 struct sw_error *error)
{
    if (module->abi != SW_ABI || module->size != sizeof(*module))
        return sw_error_set(error, SW_E_ABI,
                            "%s: built for another slipway (ABI %u, descriptor of %u bytes; this "
                            "one has ABI %u, %zu bytes): build it anew with this version's headers",
                            path, module->abi, module->size, SW_ABI, sizeof(*module));
    if (!module->name || strcmp(module->name, name) != 0)
        return sw_error_set(error, -ENOEXEC, "%s: the module inside is called %s, not %s", path,
                            module->name ? module->name : "nothing", name);
    return 0;
}

static int open_file(const char *path, const char *name, const struct sw_module **ret_module,
                     struct sw_error *error)
{
    char symbol[NAME_LIMIT + sizeof("sw_module_")] = "sw_module_";
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        /* The linker's words begin with the path, as a rule. */
        const char *why = dlerror();
        return sw_error_set(error, -ENOEXEC, "cannot open module %s: %s", name, why);
    }
    strncat(symbol, name, NAME_LIMIT);
    const struct sw_module *module = dlsym(handle, symbol);
    if (!module)
        return sw_error_set(error, -ENOEXEC, "%s: not a module: it does not export %s", path,
                            symbol);
    int code = check(module, name, path, error);
    if (!code)
        *ret_module = module;
    return code;
}

static const struct sw_module *find_builtin(const char *name)
{
    for (size_t i = 0; sw_builtin_modules[i]; i++)
        if (strcmp(sw_builtin_modules[i]->name, name) == 0)
            return sw_builtin_modules[i];
    return NULL;
}

/* The path of NAME.so in dir or dir/NAME (the caller frees it), or NULL. */
static char *find_file(const char *dir, const char *name)
{
    char *path = sw_asprintf("%s/%s.so", dir, name);

    if (access(path, F_OK) == 0)
        return path;
    sw_free(path);
    path = sw_asprintf("%s/%s/%s.so", dir, name, name);
    return access(path, F_OK) == 0 ? path : sw_free(path);
}

int sw_module_find(const char *dir, const char *name, const struct sw_module **ret_module,
                   struct sw_error *error)
{
    const struct sw_module *builtin = find_builtin(name);

    if (builtin) {
        *ret_module = builtin;
        return 0;
    }
    if (!is_name(name))
        return sw_error_set(error, -EINVAL,
                            "\"%s\" is no name of a module: lower-case letters, digits and _",
                            name);
    SW_AUTO(char, sw_free) path = find_file(dir, name);
    if (!path)
        return sw_error_set(error, -ENOENT,
                            "there is no module %s in %s; slipway --list-modules shows what there "
                            "is",
                            name, dir);
    return open_file(path, name, ret_module, error);
}

/* ---- all modules ---- */

struct names {
    char **at;
    size_t count;
};

static void add_name(struct names *names, const char *name, size_t len)
{
    for (size_t i = 0; i < names->count; i++)
        if (strncmp(names->at[i], name, len) == 0 && !names->at[i][len])
            return;
    names->at = sw_realloc(names->at, names->count + 1, sizeof(*names->at));
    names->at[names->count++] = sw_strndup(name, len);
}

static void add_names_of(struct names *names, const char *dir)
{
    DIR *folder = opendir(dir);
    struct dirent *entry;

    if (!folder)
        return;
    while ((entry = readdir(folder))) {
        size_t len = strlen(entry->d_name);
        if (len > 3 && strcmp(entry->d_name + len - 3, ".so") == 0) {
            add_name(names, entry->d_name, len - 3);
        } else if (is_name(entry->d_name)) {
            char *path = find_file(dir, entry->d_name);
            if (path)
                add_name(names, entry->d_name, len);
            sw_free(path);
        }
    }
    closedir(folder);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct names all_names(const char *dir)
{
    struct names names = {0};

    for (size_t i = 0; sw_builtin_modules[i]; i++)
        add_name(&names, sw_builtin_modules[i]->name, strlen(sw_builtin_modules[i]->name));
    add_names_of(&names, dir);
    if (names.count > 0)
        qsort(names.at, names.count, sizeof(*names.at), compare_names);
    return names;
}

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        sw_free(names->at[i]);
    sw_free(names->at);
}

void sw_module_each(const char *dir, sw_module_seen_fn fn, void *arg)
{
    struct names names = all_names(dir);

    for (size_t i = 0; i < names.count; i++) {
        const struct sw_module *module = NULL;
        struct sw_error error = {0};
        SW_AUTO(char, sw_free) path = NULL;
        if (!find_builtin(names.at[i]))
            path = find_file(dir, names.at[i]);
        sw_module_find(dir, names.at[i], &module, &error);
        fn(arg, names.at[i], path, module, &error);
    }
    names_done(&names);
}

/* ---- order ---- */

static size_t index_of(const struct sw_module *const *modules, size_t count, const char *name)
{
    size_t i = 0;

    while (i < count && strcmp(modules[i]->name, name) != 0)
        i++;
    return i;
}

static int check_needs(const struct sw_module *const *modules, size_t count, struct sw_error *error)
{
    for (size_t i = 0; i < count; i++)
        for (const char *const *need = modules[i]->needs; need && *need; need++)
            if (index_of(modules, count, *need) == count)
                return sw_error_set(error, -ENOENT,
                                    "module %s needs module %s, which does not run: add it to "
                                    "modules, or take %s out",
                                    modules[i]->name, *need, modules[i]->name);
    return 0;
}

/* Do all that it needs stand before place `at`? */
static bool may_stand_at(const struct sw_module *const *modules, size_t at,
                         const struct sw_module *module)
{
    for (const char *const *need = module->needs; need && *need; need++)
        if (index_of(modules, at, *need) == at)
            return false;
    return true;
}

static int name_circle(const struct sw_module *const *modules, size_t from, size_t count,
                       struct sw_error *error)
{
    char text[256] = "";

    for (size_t i = from; i < count; i++) {
        size_t len = strlen(text);
        strncat(text, i > from ? ", " : "", sizeof(text) - len - 1);
        len = strlen(text);
        strncat(text, modules[i]->name, sizeof(text) - len - 1);
    }
    return sw_error_set(error, -ELOOP, "modules need each other in a circle: %s", text);
}

int sw_module_order(const struct sw_module **modules, size_t count, struct sw_error *error)
{
    int code = check_needs(modules, count, error);

    for (size_t at = 0; !code && at < count; at++) {
        size_t next = at;
        while (next < count && !may_stand_at(modules, at, modules[next]))
            next++;
        if (next == count)
            return name_circle(modules, at, count, error);
        const struct sw_module *module = modules[next];
        memmove(&modules[at + 1], &modules[at], (next - at) * sizeof(struct sw_module *));
        modules[at] = module;
    }
    return code;
}

/* ---- where ---- */

/* A build tree has build.ninja at its top, and the executable is one or two folders below. */
static char *dir_of_build(const char *executable_dir)
{
    static const char *const ups[] = {"", "/..", "/../.."};

    for (size_t i = 0; i < SW_ARRAY_SIZE(ups); i++) {
        SW_AUTO(char, sw_free) ninja = sw_asprintf("%s%s/build.ninja", executable_dir, ups[i]);
        if (access(ninja, F_OK) == 0)
            return sw_asprintf("%s%s/modules", executable_dir, ups[i]);
    }
    return NULL;
}

char *sw_module_default_dir(void)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash) {
        *slash = '\0';
        char *dir = dir_of_build(path);
        if (dir)
            return dir;
    }
    return sw_strdup(SW_MODULE_DIR);
}

/* ---- configuration ---- */

int sw_module_config_load(const char *folder, const struct sw_module *module, void **ret_config,
                          struct sw_error *error)
{
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/%s.yaml", folder, module->name);

    *ret_config = NULL;
    if (!module->config_schema) {
        if (access(path, F_OK) != 0)
            return 0;
        return sw_error_set(error, SW_E_CONFIG, "%s: module %s has nothing to configure", path,
                            module->name);
    }
    int code = sw_config_load(path, module->config_schema, ret_config, error);
    if (code == -ENOENT)
        code = sw_config_parse(path, "", 0, module->config_schema, ret_config, error);
    return code;
}

/* Of FOLDER/FILE, if that is a configuration; those that begin with a dot are not (a ConfigMap that
 * is mounted has some). */
static int check_name(const char *folder, const char *file, const struct names *known,
                      struct sw_error *error)
{
    const char *ending = strrchr(file, '.');
    const char *nearest = NULL;
    size_t distance = SIZE_MAX;

    if (file[0] == '.' || !ending)
        return 0;
    if (strcmp(ending, ".yml") == 0)
        return sw_error_set(error, SW_E_CONFIG, "%s/%s: the name must end in .yaml", folder, file);
    if (strcmp(ending, ".yaml") != 0)
        return 0;
    SW_AUTO(char, sw_free) name = sw_strndup(file, (size_t)(ending - file));
    for (size_t i = 0; i < known->count; i++) {
        if (strcmp(known->at[i], name) == 0)
            return 0;
        sw_nearest(name, known->at[i], &nearest, &distance);
    }
    if (nearest)
        return sw_error_set(error, SW_E_CONFIG,
                            "%s/%s: there is no module %s: did you mean %s.yaml?", folder, file,
                            name, nearest);
    return sw_error_set(error, SW_E_CONFIG,
                        "%s/%s: there is no module %s; slipway --list-modules shows what there is",
                        folder, file, name);
}

int sw_module_config_check_names(const char *folder, const char *dir, struct sw_error *error)
{
    DIR *open = opendir(folder);
    struct dirent *entry;
    int code = 0;

    if (!open)
        return 0;
    struct names known = all_names(dir);
    while (!code && (entry = readdir(open)))
        code = check_name(folder, entry->d_name, &known, error);
    names_done(&known);
    closedir(open);
    return code;
}

void *sw_module_config_free(const struct sw_module *module, void *config)
{
    return config ? sw_config_free(module->config_schema, config) : NULL;
}
