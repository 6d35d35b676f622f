/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated API server on a virtual loop, and a client that asks it: for the tests of the API
 * server.
 */
#ifndef TESTS_UNIT_SIM_API_CLIENT_H
#define TESTS_UNIT_SIM_API_CLIENT_H

#include "test.h"

#include <jansson.h>

#include "api.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "document.h"
#include "kind.h"
#include "store.h"

#define UNUSED __attribute__((unused))
#define START_US 1700000000000000 /* 2023-11-14T22:13:20Z */

struct sim {
    struct sw_loop *loop;
    struct sw_sim_store *store;
    struct sw_sim_api *api;
};

static const struct sw_log no_log;

/* With a window of changes of that many, and admission by a caller. */
static inline UNUSED struct sim sim_new_with(size_t window,
                                             const struct sw_sim_api_options *options)
{
    struct sim sim = {.loop = sw_loop_virtual_new(START_US, 7)};
    sim.store = sw_sim_store_new(100, window);
    sim.api = sw_sim_api_new(sim.loop, sim.store, options, &no_log);
    return sim;
}

static inline UNUSED struct sim sim_new(void)
{
    return sim_new_with(10000, NULL);
}

static inline UNUSED void sim_free(struct sim *sim)
{
    sw_sim_api_free(sim->api);
    sw_sim_store_free(sim->store);
    assert_int_equal(sw_loop_close(sim->loop), 0);
}

struct answer {
    struct sw_sim_call *call;   /* NULL once it has ended */
    struct sw_sim_api *arg_api; /* of a test that leaves from a callback */
    int status;
    char content_type[96];
    char warnings[512];
    unsigned retry_after_s;
    struct sw_buf body;
    bool has_ended, is_whole;
    json_t *json; /* of a whole answer that is JSON */
};

static inline void client_head(void *arg, int status, const char *content_type,
                               unsigned retry_after_s, const char *const *warnings, size_t count)
{
    struct answer *answer = arg;
    assert_int_equal(answer->status, 0);
    answer->status = status;
    answer->retry_after_s = retry_after_s;
    snprintf(answer->content_type, sizeof(answer->content_type), "%s", content_type);
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(answer->warnings);
        snprintf(answer->warnings + len, sizeof(answer->warnings) - len, "%s%s", len ? "|" : "",
                 warnings[i]);
    }
}

static inline void client_body(void *arg, const char *bytes, size_t len)
{
    struct answer *answer = arg;
    assert_true(answer->status != 0);
    sw_buf_append(&answer->body, bytes, len);
}

static inline void client_end(void *arg, bool is_whole)
{
    struct answer *answer = arg;
    assert_false(answer->has_ended);
    answer->has_ended = true;
    answer->is_whole = is_whole;
    answer->call = NULL;
    answer->json = json_loadb(answer->body.bytes, answer->body.len, JSON_DECODE_ANY, NULL);
}

static const struct sw_sim_answer_events client_events = {
    .on_head = client_head,
    .on_body = client_body,
    .on_end = client_end,
};

static inline UNUSED struct answer *send_request(struct sim *sim,
                                                 const struct sw_sim_request *request)
{
    struct answer *answer = SW_NEW(struct answer);
    sw_buf_init(&answer->body, SIZE_MAX);
    sw_sim_api_send(sim->api, request, &client_events, answer, &answer->call);
    assert_int_equal(answer->status, 0); /* nothing comes from within */
    return answer;
}

static inline UNUSED void answer_free(struct answer *answer)
{
    json_decref(answer->json);
    sw_buf_done(&answer->body);
    sw_free(answer);
}

static inline UNUSED struct sw_sim_request request_of(const char *method, const char *target,
                                                      const char *body)
{
    return (struct sw_sim_request){
        .method = method,
        .target = target,
        .user_agent = "tester/1.0",
        .username = "tester",
        .body = body,
        .body_len = body ? strlen(body) : 0,
    };
}

/* One that ends at once. */
static inline UNUSED struct answer *ask(struct sim *sim, const char *method, const char *target,
                                        const char *body)
{
    struct sw_sim_request request = request_of(method, target, body);
    if (strcmp(method, "PATCH") == 0) {
        request.content_type = "application/merge-patch+json";
    }
    struct answer *answer = send_request(sim, &request);
    sw_loop_virtual_advance(sim->loop, 0);
    assert_true(answer->has_ended);
    return answer;
}

/* The value at a path as compact JSON without quotes; "" where there is none. Free it. */
static inline UNUSED char *value_at(const json_t *json, const char *path)
{
    const json_t *value = *path ? sw_sim_at(json, path) : json;
    if (json_is_string(value)) {
        return strdup(json_string_value(value));
    }
    return value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("");
}

#define check_at(document, path, want)           \
    do {                                         \
        char *value_ = value_at(document, path); \
        assert_string_equal(value_, want);       \
        free(value_);                            \
    } while (0)

/* Asks, checks the status and the value at the path, and forgets the answer. */
#define check_ask(sim, method_, target_, text_, want_status, path_, want)                     \
    do {                                                                                      \
        struct answer *answer_ = ask(sim, method_, target_, text_);                           \
        if (answer_->status != (want_status)) {                                               \
            fail_msg("%s %s: %d %s", method_, target_, answer_->status, answer_->body.bytes); \
        }                                                                                     \
        check_at(answer_->json, path_, want);                                                 \
        answer_free(answer_);                                                                 \
    } while (0)

#define DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
#define CONFIG_MAPS "/api/v1/namespaces/default/configmaps"
#define PODS "/api/v1/namespaces/default/pods"

/* The name is put in for %s. */
#define DEPLOYMENT                                                                            \
    "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"%s\","      \
    "\"labels\":{\"app\":\"%s\"}},\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"%s\"}}," \
    "\"template\":{\"metadata\":{\"labels\":{\"app\":\"%s\"}},\"spec\":{\"containers\":["     \
    "{\"name\":\"c\",\"image\":\"i\"}]}}}}"

static inline UNUSED void make_deployment(struct sim *sim, const char *name)
{
    char *body = NULL;
    assert_true(asprintf(&body, DEPLOYMENT, name, name, name, name) > 0);
    check_ask(sim, "POST", DEPLOYMENTS, body, 201, "metadata.name", name);
    free(body);
}

static inline UNUSED void make_config_map(struct sim *sim, const char *name, const char *label)
{
    char *body = NULL;
    assert_true(asprintf(&body,
                         "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"l\":\"%s\"}},\"data\":{}}",
                         name, label) > 0);
    check_ask(sim, "POST", CONFIG_MAPS, body, 201, "metadata.name", name);
    free(body);
}

#endif
