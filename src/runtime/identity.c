/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking one source after the other. A source that the API server does not have, or that we may not
 * use, is skipped; one that does not answer is asked again, because a wrong "" would make the
 * webhook undo our own releases.
 */
#include "runtime/identity.h"

#include <string.h>

#include <slipway/json.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/credentials.h"

enum { RETRY_MS = 2000 };

static const struct source {
    const char *version; /* of authentication.k8s.io */
    const char *kind;
    const char *plural;
    bool shows_token; /* asks about our own token, which it carries */
} sources[] = {
    {"v1", "SelfSubjectReview", "selfsubjectreviews", false},
    {"v1beta1", "SelfSubjectReview", "selfsubjectreviews", false},
    {"v1alpha1", "SelfSubjectReview", "selfsubjectreviews", false},
    {"v1", "TokenReview", "tokenreviews", true},
};

struct sw_identity {
    struct sw_client *client;
    struct sw_credentials *credentials;
    struct sw_log log;
    sw_identity_fn fn;
    void *arg;
    char *username; /* NULL: never told */
    size_t source;
    struct sw_call *call;
    struct sw_timer timer;
};

static void tell(struct sw_identity *identity, const char *username)
{
    if (identity->username && strcmp(identity->username, username) == 0)
        return;
    sw_free(identity->username);
    identity->username = sw_strdup(username);
    if (username[0])
        sw_log_info(&identity->log, "known to the API server", SW_STR("username", username));
    else
        sw_log_warn(&identity->log,
                    "the API server does not say who we are: reviews of our own writes cannot be "
                    "told from those of others");
    identity->fn(identity->arg, username);
}

static const char *username_in(struct sw_arena *arena, const struct sw_reply *reply)
{
    struct sw_json *body;

    if (sw_json_parse(arena, reply->body, reply->body_len, &body, NULL))
        return NULL;
    const struct sw_json *status = sw_json_get(body, "status");
    const char *name = sw_json_get_string(sw_json_get(status, "userInfo"), "username");
    return name ? name : sw_json_get_string(sw_json_get(status, "user"), "username");
}

static void ask(struct sw_identity *identity);

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct sw_identity *identity = arg;

    identity->call = NULL;
    if (reply->code || reply->status >= 500 || reply->status == 429 || reply->status == 401) {
        sw_timer_start(&identity->timer, RETRY_MS);
        return;
    }
    struct sw_arena *arena = sw_arena_new(0);
    const char *username = reply->status < 300 ? username_in(arena, reply) : NULL;
    if (username && username[0]) {
        tell(identity, username);
    } else {
        identity->source++;
        ask(identity);
    }
    sw_arena_free(arena);
}

static const char *body_of(const struct sw_identity *identity, const struct source *source,
                           struct sw_arena *arena)
{
    const char *authorization = sw_credentials_authorization(identity->credentials);
    struct sw_json *body = sw_json_object(arena);

    if (source->shows_token && (!authorization || strncmp(authorization, "Bearer ", 7) != 0))
        return NULL;
    sw_json_set_string(body, "apiVersion",
                       sw_arena_printf(arena, "authentication.k8s.io/%s", source->version));
    sw_json_set_string(body, "kind", source->kind);
    if (source->shows_token)
        sw_json_set_string(sw_json_set_object(body, "spec"), "token", authorization + 7);
    return sw_json_dump(body, arena, NULL);
}

static void ask_source(struct sw_identity *identity, const struct source *source,
                       struct sw_arena *arena, const char *body)
{
    struct sw_call_options options = {
        .method = "POST",
        .path = sw_arena_printf(arena, "/apis/authentication.k8s.io/%s/%s", source->version,
                                source->plural),
        .body = body,
        .body_len = strlen(body),
        .deadline_ms = 10 * 1000,
    };

    if (sw_client_call(identity->client, &options, on_reply, identity, &identity->call))
        sw_timer_start(&identity->timer, RETRY_MS);
}

static void ask(struct sw_identity *identity)
{
    for (; identity->source < SW_ARRAY_SIZE(sources); identity->source++) {
        const struct source *source = &sources[identity->source];
        struct sw_arena *arena = sw_arena_new(0);
        const char *body = body_of(identity, source, arena);
        if (body)
            ask_source(identity, source, arena, body);
        sw_arena_free(arena);
        if (body)
            return;
    }
    tell(identity, "");
}

static void begin(struct sw_timer *timer)
{
    struct sw_identity *identity = container_of(timer, struct sw_identity, timer);
    const char *subject = sw_credentials_subject(identity->credentials);

    if (subject)
        tell(identity, subject);
    else
        ask(identity);
}

/* Another token may be somebody else's. */
static void on_credentials(void *arg)
{
    struct sw_identity *identity = arg;

    if (identity->call)
        sw_call_cancel(identity->call);
    identity->call = NULL;
    identity->source = 0;
    sw_timer_start(&identity->timer, 0);
}

struct sw_identity *sw_identity_open(struct sw_loop *loop, struct sw_client *client,
                                     struct sw_credentials *credentials, const struct sw_log *log,
                                     sw_identity_fn fn, void *arg)
{
    struct sw_identity *identity = SW_NEW(struct sw_identity);

    identity->client = client;
    identity->credentials = credentials;
    identity->log = *log;
    identity->fn = fn;
    identity->arg = arg;
    sw_credentials_on_change(credentials, on_credentials, identity);
    sw_timer_init(&identity->timer, loop, begin);
    sw_timer_start(&identity->timer, 0);
    return identity;
}

void sw_identity_close(struct sw_identity *identity)
{
    if (!identity)
        return;
    sw_credentials_off_change(identity->credentials, on_credentials, identity);
    if (identity->call)
        sw_call_cancel(identity->call);
    sw_timer_stop(&identity->timer);
    sw_free(identity->username);
    sw_free(identity);
}
