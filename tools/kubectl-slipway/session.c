/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of a session, its end in order, and requests that are waited for.
 */
#include "session.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slipway/json.h>

#include "base/loop.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/credentials.h"
#include "kube/transport.h"
#include "net/url.h"

/* ---- its life ---- */

static bool may_colour(void)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && !(no_color && no_color[0]) &&
           !(term && strcmp(term, "dumb") == 0);
}

int ks_session_open(struct ks_session *session, const struct ks_options *options,
                    struct sw_error *error)
{
    *session = (struct ks_session){.options = options};
    setlocale(LC_CTYPE, "");
    session->is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    session->is_coloured = may_colour();
    sw_buf_init(&session->out, SIZE_MAX);
    int code = sw_loop_open(&session->loop);
    if (code)
        return sw_error_set(error, code, "no event loop: %s", sw_strerror(code));
    /* What goes wrong with a request is said by the command; the log is for what nobody asked. */
    session->sink = sw_log_sink_new(session->loop, STDERR_FILENO, SW_LOG_CONSOLE, SW_LEVEL_ERROR);
    session->log = (struct sw_log){.sink = session->sink, .name = "kubectl-slipway"};
    session->metrics = sw_metrics_new();
    session->intern = sw_intern_new();
    session->arena = sw_arena_new(0);
    const struct sw_credentials_options where = {options->values[KS_KUBECONFIG],
                                                 options->values[KS_CONTEXT]};
    code = sw_credentials_open(session->loop, &where, &session->log, &session->credentials, error);
    if (!code)
        code = sw_transport_http_open(session->loop, session->credentials, "kubectl-slipway",
                                      &session->log, &session->transport, error);
    if (code)
        return code;
    const struct sw_client_options client = {
        .path_prefix = sw_credentials_server(session->credentials)->path,
    };
    session->client =
        sw_client_new(session->loop, session->transport, &client, session->metrics, &session->log);
    return 0;
}

void ks_session_close(struct ks_session *session)
{
    if (!session->loop)
        return;
    session->client = sw_client_free(session->client);
    if (session->transport)
        session->transport->ops->close(session->transport);
    sw_credentials_close(session->credentials);
    sw_loop_run(session->loop);
    sw_arena_free(session->arena);
    sw_intern_free(session->intern);
    sw_metrics_free(session->metrics);
    sw_log_sink_free(session->sink);
    sw_loop_close(session->loop);
    sw_buf_done(&session->out);
    session->loop = NULL;
}

/* ---- what was asked for ---- */

bool ks_flag(const struct ks_session *session, enum ks_flag flag)
{
    return session->options->values[flag] != NULL;
}

const char *ks_namespace(const struct ks_session *session)
{
    const char *named = session->options->values[KS_NAMESPACE];

    if (ks_flag(session, KS_ALL_NAMESPACES))
        return NULL;
    return named ? named : sw_credentials_namespace(session->credentials);
}

bool ks_is_wanted(const struct ks_session *session, const char *kind, const char *name)
{
    const struct ks_options *options = session->options;

    for (size_t i = 0; i < options->name_count; i++)
        if (strcmp(options->names[i], name) == 0 &&
            (!options->kinds[i][0] || strcmp(options->kinds[i], kind) == 0))
            return true;
    return options->name_count == 0;
}

const char *ks_write_query(const struct ks_session *session)
{
    const char *dry_run = session->options->values[KS_DRY_RUN];

    return dry_run && strcmp(dry_run, "server") == 0 ? "?fieldManager=" KS_FIELD_MANAGER
                                                       "&dryRun=All"
                                                     : "?fieldManager=" KS_FIELD_MANAGER;
}

int64_t ks_now_us(const struct ks_session *session)
{
    return sw_wall_us(session->loop);
}

bool ks_flush(struct ks_session *session)
{
    fwrite(session->out.bytes, 1, session->out.len, stdout);
    sw_buf_clear(&session->out);
    return fflush(stdout) == 0 && !ferror(stdout);
}

void ks_complain(const char *format, ...)
{
    va_list args;

    fputs("kubectl-slipway: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("\n", stderr);
}

/* ---- requests ---- */

struct waiting {
    struct ks_session *session;
    struct ks_answer *answer;
    bool is_over;
};

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct waiting *waiting = arg;
    struct sw_arena *arena = waiting->session->arena;

    *waiting->answer = (struct ks_answer){
        .status = reply->code ? 0 : reply->status,
        .body = sw_arena_strndup(arena, reply->body ? reply->body : "", reply->body_len),
        .body_len = reply->body_len,
        .reason = sw_arena_strdup(arena, reply->why.reason ? reply->why.reason : ""),
        .message = sw_arena_strdup(arena, reply->why.message ? reply->why.message : ""),
    };
    if (reply->code)
        waiting->answer->message = sw_arena_printf(
            arena, "the API server does not answer: %s",
            reply->error && reply->error->text[0] ? reply->error->text : sw_strerror(reply->code));
    else if (reply->status == 401)
        waiting->answer->message =
            "the API server does not know who we are (401): the credentials of the kubeconfig are "
            "not valid, or not any more";
    waiting->is_over = true;
    sw_loop_stop(waiting->session->loop);
}

bool ks_ask(struct ks_session *session, const char *method, const char *path,
            const char *content_type, const struct sw_json *body, uint64_t deadline_ms,
            struct ks_answer *ret_answer)
{
    struct waiting waiting = {.session = session, .answer = ret_answer};
    struct sw_call_options options = {
        .method = method,
        .path = path,
        .content_type = content_type,
        .is_guarded = strcmp(method, "PATCH") == 0,
        .logs_itself = true,
        .deadline_ms = deadline_ms,
    };
    struct sw_call *call;

    if (body)
        options.body = sw_json_dump(body, session->arena, &options.body_len);
    *ret_answer = (struct ks_answer){.body = "", .reason = "", .message = ""};
    int code = sw_client_call(session->client, &options, on_reply, &waiting, &call);
    if (code) {
        ret_answer->message = sw_strerror(code);
        return false;
    }
    while (!waiting.is_over)
        sw_loop_run(session->loop);
    return ret_answer->status >= 200 && ret_answer->status < 300;
}

const struct sw_json *ks_get(struct ks_session *session, const char *path,
                             struct ks_answer *ret_answer)
{
    struct sw_json *value;
    const char *why;

    if (!ks_ask(session, "GET", path, NULL, NULL, 0, ret_answer))
        return NULL;
    if (sw_json_parse(session->arena, ret_answer->body, ret_answer->body_len, &value, &why) == 0)
        return value;
    ret_answer->status = 0;
    ret_answer->message = sw_arena_printf(session->arena, "%s is no JSON: %s", path, why);
    return NULL;
}

const char *ks_path(struct ks_session *session, const struct sw_kind *kind, const char *namespace_,
                    const char *name)
{
    char *path;

    if (sw_client_path(kind, namespace_, name, NULL, &path)) {
        ks_complain("\"%s\" is not a name that an object can have", name ? name : namespace_);
        return NULL;
    }
    const char *copy = sw_arena_strdup(session->arena, path);
    sw_free(path);
    return copy;
}
