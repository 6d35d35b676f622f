/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of paths; everything is answered at once.
 */
#include "admin.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "base/error.h"
#include "base/log.h"
#include "base/util.h"
#include "dump.h"
#include "fault_rules.h"
#include "net/http_server.h"
#include "pods.h"
#include "store.h"
#include "workloads.h"

struct sw_sim_admin {
    struct sw_sim_admin_options at;
    struct sw_log log;
    struct sw_http_server *server;
    bool is_closing;
};

static int mistake(json_t **ret, const char *text)
{
    *ret = json_pack("{s:s}", "error", text);
    return 400;
}

static int tell_faults(struct sw_sim_admin *admin, const char *method, const char *name,
                       const json_t *body, json_t **ret)
{
    struct sw_error error = {0};

    if (strcmp(method, "GET") == 0) {
        *ret = sw_sim_fault_rules_show(admin->at.rules);
        return 200;
    }
    if (strcmp(method, "DELETE") == 0) {
        bool was_there = sw_sim_fault_rules_remove(admin->at.rules, name);
        return was_there || !name ? 200 : 404;
    }
    if (strcmp(method, "PUT") != 0 || !name)
        return 405;
    if (sw_sim_fault_rules_set(admin->at.rules, name, body, &error))
        return mistake(ret, error.text);
    return 200;
}

static int end_watches(struct sw_sim_admin *admin, const json_t *body)
{
    sw_sim_api_end_watches(admin->at.api, NULL, json_is_true(json_object_get(body, "whole")));
    return 200;
}

static int set_controllers(struct sw_sim_admin *admin, const json_t *body, json_t **ret)
{
    const json_t *running = json_object_get(body, "running");

    if (!json_is_boolean(running))
        return mistake(ret, "\"running\" must be true or false");
    sw_sim_workloads_set_running(admin->at.workloads, json_is_true(running));
    return 200;
}

static int tell(struct sw_sim_admin *admin, const char *method, const char *path,
                const json_t *body, json_t **ret)
{
    bool is_post = strcmp(method, "POST") == 0;

    if (strcmp(path, "/healthz") == 0)
        return 200;
    if (strcmp(path, "/faults") == 0)
        return tell_faults(admin, method, NULL, body, ret);
    if (strncmp(path, "/faults/", 8) == 0 && path[8])
        return tell_faults(admin, method, path + 8, body, ret);
    if (strcmp(path, "/watches/end") == 0 && is_post)
        return end_watches(admin, body);
    if (strcmp(path, "/compact") == 0 && is_post) {
        sw_sim_store_compact(admin->at.store, sw_sim_store_version(admin->at.store));
        return 200;
    }
    if (strcmp(path, "/controllers") == 0 && strcmp(method, "PUT") == 0)
        return set_controllers(admin, body, ret);
    return sw_sim_pods_tell(admin->at.pods, method, path, body, ret);
}

static void on_request(void *arg, struct sw_http_incoming *in)
{
    struct sw_sim_admin *admin = arg;
    json_error_t why;
    json_t *ret = NULL;
    json_t *body = in->body_len ? json_loadb(in->body, in->body_len, 0, &why) : json_object();
    int status = 503;

    if (!admin->is_closing)
        status = body ? tell(admin, in->method, in->path, body, &ret) : mistake(&ret, why.text);
    char *text = sw_sim_dump_as(ret ? ret : json_null(), JSON_INDENT(2) | JSON_ENCODE_ANY);
    struct sw_http_answer answer = {
        .status = status,
        .content_type = "application/json",
        .body = text,
        .body_len = strlen(text),
    };
    sw_http_answer(in, &answer);
    sw_free(text);
    json_decref(ret);
    json_decref(body);
}

static void on_closed(void *arg)
{
    sw_free(arg);
}

int sw_sim_admin_open(struct sw_loop *loop, const struct sw_sim_admin_options *options,
                      const struct sw_log *log, struct sw_sim_admin **ret_admin,
                      struct sw_error *error)
{
    struct sw_sim_admin *admin = SW_NEW(struct sw_sim_admin);
    struct sw_http_server_options http = {.address = options->address, .max_connections = 256};

    admin->at = *options;
    admin->log = *log;
    int code =
        sw_http_server_open(loop, &http, on_request, admin, &admin->log, &admin->server, error);
    if (code) {
        sw_free(admin);
        return code;
    }
    *ret_admin = admin;
    return 0;
}

uint16_t sw_sim_admin_port(const struct sw_sim_admin *admin)
{
    return sw_http_server_port(admin->server);
}

void sw_sim_admin_close(struct sw_sim_admin *admin)
{
    if (!admin)
        return;
    admin->is_closing = true;
    sw_http_server_close(admin->server, on_closed, admin);
}
