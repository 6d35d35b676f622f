/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of the API: /api/v1/..., /apis/GROUP/VERSION/..., [watch/][namespaces/NS/]PLURAL[/NAME
 * [/SUBRESOURCE]], and what is no resource.
 */
#include <string.h>

#include "api_internal.h"
#include "base/util.h"
#include "net/url.h"

enum { SEGMENTS = 10 };

struct segments {
    char *at[SEGMENTS];
    size_t count;
    bool is_too_long;
};

static void split(struct segments *segments, const char *path, size_t len)
{
    size_t from = 0;
    while (from < len) {
        size_t end = from;
        while (end < len && path[end] != '/') {
            end++;
        }
        if (end > from) {
            char *text = NULL;
            if (segments->count == SEGMENTS || sw_url_decode(path + from, end - from, &text)) {
                segments->is_too_long = true;
                return;
            }
            segments->at[segments->count++] = text;
        }
        from = end + 1;
    }
}

static const char *segment(const struct segments *segments, size_t number)
{
    return number < segments->count ? segments->at[number] : "";
}

static bool has_subresource(const struct sw_sim_kind *kind, const char *name)
{
    return (strcmp(name, "status") == 0 && kind->has_status) ||
           (strcmp(name, "scale") == 0 && kind->has_scale) ||
           (strcmp(name, "eviction") == 0 && strcmp(kind->plural, "pods") == 0 && !*kind->group) ||
           (strcmp(name, "finalize") == 0 && strcmp(kind->plural, "namespaces") == 0 &&
            !*kind->group);
}

static void set_resource(struct sw_sim_route *route, const struct sw_sim_served *served,
                         const struct segments *segments, size_t name_at)
{
    const char *subresource = segment(segments, name_at + 1);
    if (!served || segments->count > name_at + 2 ||
        (*subresource && !has_subresource(served->kind, subresource))) {
        return;
    }
    route->target = SW_SIM_RESOURCE;
    route->kind = served->kind;
    route->stored = served->stored;
    sw_free(route->name);
    sw_free(route->subresource);
    route->name = sw_strdup(segment(segments, name_at));
    route->subresource = sw_strdup(subresource);
}

/* first: the segment behind the version. */
static void read_resource(const struct sw_sim_api *api, const struct segments *segments,
                          size_t first, struct sw_sim_route *route)
{
    if (strcmp(segment(segments, first), "watch") == 0) {
        route->is_watch_path = true;
        first++;
    }
    const char *plural = segment(segments, first);
    if (strcmp(plural, "namespaces") == 0 && segments->count >= first + 3) {
        const struct sw_sim_served *inside =
            sw_sim_served(api, route->group, route->version, segment(segments, first + 2));
        if (inside && inside->kind->is_namespaced) {
            sw_free(route->namespace_);
            route->namespace_ = sw_strdup(segment(segments, first + 1));
            set_resource(route, inside, segments, first + 3);
            return;
        }
    }
    const struct sw_sim_served *served = sw_sim_served(api, route->group, route->version, plural);
    if (served && served->kind->is_namespaced && segments->count > first + 1) {
        return; /* an object needs its namespace */
    }
    set_resource(route, served, segments, first + 1);
}

static bool has_version(const struct sw_sim_api *api, const char *group, const char *version)
{
    for (size_t i = 0; i < api->served_count; i++) {
        const struct sw_sim_kind *kind = api->served[i].kind;
        if (strcmp(kind->group, group) == 0 && (!version || strcmp(kind->version, version) == 0)) {
            return true;
        }
    }
    return false;
}

static void read_group(const struct sw_sim_api *api, const struct segments *segments,
                       struct sw_sim_route *route)
{
    bool is_core = strcmp(segment(segments, 0), "api") == 0;
    size_t version_at = is_core ? 1 : 2;
    sw_free(route->group);
    sw_free(route->version);
    route->group = sw_strdup(is_core ? "" : segment(segments, 1));
    route->version = sw_strdup(segment(segments, version_at));
    if (segments->count == 1) {
        route->target = is_core ? SW_SIM_CORE_VERSIONS : SW_SIM_GROUPS;
    } else if (segments->count == version_at) {
        route->target = has_version(api, route->group, NULL) ? SW_SIM_GROUP : SW_SIM_NOTHING;
    } else if (segments->count == version_at + 1) {
        route->target =
            has_version(api, route->group, route->version) ? SW_SIM_RESOURCES : SW_SIM_NOTHING;
    } else {
        read_resource(api, segments, version_at + 1, route);
    }
}

void sw_sim_route_read(const struct sw_sim_api *api, const char *path, size_t len,
                       struct sw_sim_route *ret_route)
{
    *ret_route = (struct sw_sim_route){
        .group = sw_strdup(""),
        .version = sw_strdup(""),
        .namespace_ = sw_strdup(""),
        .name = sw_strdup(""),
        .subresource = sw_strdup(""),
    };
    struct segments segments = {0};
    split(&segments, path, len);
    const char *first = segment(&segments, 0);
    if (segments.is_too_long) {
        ret_route->target = SW_SIM_NOTHING;
    } else if (strcmp(first, "api") == 0 || strcmp(first, "apis") == 0) {
        read_group(api, &segments, ret_route);
    } else if (strcmp(first, "healthz") == 0 || strcmp(first, "readyz") == 0 ||
               strcmp(first, "livez") == 0) {
        ret_route->target = SW_SIM_HEALTH;
    } else if (strcmp(first, "version") == 0 && segments.count == 1) {
        ret_route->target = SW_SIM_VERSION;
    } else if (strcmp(first, "openapi") == 0 && strcmp(segment(&segments, 1), "v2") == 0) {
        ret_route->target = SW_SIM_OPENAPI;
    } else if (segments.count == 0) {
        ret_route->target = SW_SIM_PATHS;
    }
    for (size_t i = 0; i < segments.count; i++) {
        sw_free(segments.at[i]);
    }
}

void sw_sim_route_done(struct sw_sim_route *route)
{
    sw_free(route->group);
    sw_free(route->version);
    sw_free(route->namespace_);
    sw_free(route->name);
    sw_free(route->subresource);
}
