/* SPDX-License-Identifier: Apache-2.0 */
/* One member of a JSON text (text_path.h): the client's scanner steps over what is beside it. */
#include "text_path.h"

#include <string.h>

#include "kube/scan.h"

/* The object that comes next; true: the value of its member comes next now. */
static bool enter_member(struct sw_scan *scan, const char *name, size_t len)
{
    struct sw_text key;
    bool is_first = true;
    if (!sw_scan_enter(scan, '{')) {
        return false;
    }
    while (sw_scan_next_member(scan, &is_first, &key)) {
        if (sw_text_is(&key, name, len)) {
            return true;
        }
        if (!sw_scan_skip(scan)) {
            return false;
        }
    }
    return false;
}

bool sw_sim_text_path(const char *text, size_t len, const char *path, const char **ret_value,
                      size_t *ret_len)
{
    struct sw_scan scan;
    sw_scan_init(&scan, text, len);
    scan.skips_deep = true;
    while (*path) {
        size_t name_len = strcspn(path, ".");
        if (!enter_member(&scan, path, name_len)) {
            return false;
        }
        path += name_len + (path[name_len] == '.');
    }
    const char *value = scan.at;
    if (!sw_scan_skip(&scan)) {
        return false;
    }
    *ret_value = value;
    *ret_len = (size_t)(scan.at - value);
    return true;
}
