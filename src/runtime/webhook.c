/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From certificate to listening socket, and from an HTTP request to admission.c.
 */
#include "runtime/webhook.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/util.h"
#include "net/http_server.h"
#include "runtime/admission.h"
#include "runtime/certificate_files.h"
#include "runtime/core.h"

struct sw_webhook {
    struct sw_loop *loop;
    struct sw_core *core; /* NULL: closing */
    struct sw_log log;
    char *address;
    struct sw_certificate_files *files; /* NULL: sw_webhook_set_tls */
    struct sw_http_server *server;      /* NULL: does not listen yet */
    bool is_draining;
    struct sw_error error; /* of listening */
    struct sw_buf out;     /* of the answer being written; kept for the next one */
};

static void on_request(void *arg, struct sw_http_incoming *incoming)
{
    struct sw_webhook *webhook = arg;
    static const struct sw_http_field allow = {"Allow", "POST"};
    struct sw_http_answer answer = {.fields = &allow};

    if (!webhook->core) {
        sw_http_answer_text(incoming, 503, "closing");
        return;
    }
    struct sw_admission_request request = {
        .method = incoming->method,
        .path = incoming->path,
        .content_type = sw_http_field_get(&incoming->fields, "Content-Type"),
        .body = incoming->body,
        .body_len = incoming->body_len,
        .arena = incoming->arena,
    };
    sw_buf_clear(&webhook->out);
    answer.status =
        sw_admission_answer(webhook->core, &request, &webhook->out, &answer.content_type);
    answer.body = webhook->out.bytes;
    answer.body_len = webhook->out.len;
    answer.field_count = answer.status == 405;
    sw_http_answer(incoming, &answer);
}

static void listen_with(struct sw_webhook *webhook, struct sw_tls_config *tls)
{
    struct sw_http_server_options options = {.address = webhook->address, .tls = tls};

    webhook->error = (struct sw_error){0};
    if (sw_http_server_open(webhook->loop, &options, on_request, webhook, &webhook->log,
                            &webhook->server, &webhook->error)) {
        sw_error_prefix(&webhook->error, "--webhook-bind-address %s", webhook->address);
        webhook->server = NULL;
        return;
    }
    if (webhook->is_draining)
        sw_http_server_drain(webhook->server);
    sw_log_info(&webhook->log, "webhook listens", SW_STR("address", webhook->address),
                SW_INT("port", sw_http_server_port(webhook->server)));
}

void sw_webhook_set_tls(struct sw_webhook *webhook, struct sw_tls_config *tls)
{
    if (webhook->server) {
        sw_http_server_set_tls(webhook->server, tls);
        return;
    }
    listen_with(webhook, tls);
    if (webhook->error.code)
        sw_log_error(&webhook->log, "webhook cannot listen", SW_STR("why", webhook->error.text));
}

static void on_certificate(void *arg, struct sw_tls_config *tls)
{
    sw_webhook_set_tls(arg, tls);
}

int sw_webhook_open(struct sw_loop *loop, struct sw_core *core,
                    const struct sw_webhook_options *options, struct sw_metrics *metrics,
                    const struct sw_log *log, struct sw_webhook **ret_webhook,
                    struct sw_error *error)
{
    struct sw_webhook *webhook = SW_NEW(struct sw_webhook);

    webhook->loop = loop;
    webhook->core = core;
    webhook->log = *log;
    webhook->address = sw_strdup(options->address);
    sw_buf_init(&webhook->out, SIZE_MAX);
    int code = 0;
    if (options->cert_folder)
        code = sw_certificate_files_open(loop, options->cert_folder, "webhook", metrics, log,
                                         on_certificate, webhook, &webhook->files);
    if (code)
        sw_error_set(error, code, "cannot watch %s: %s", options->cert_folder, sw_strerror(code));
    else if (webhook->error.code)
        *error = webhook->error;
    if (code || webhook->error.code) {
        code = error->code;
        sw_webhook_close(webhook);
        return code;
    }
    *ret_webhook = webhook;
    return 0;
}

bool sw_webhook_check(void *arg, struct sw_buf *why)
{
    const struct sw_webhook *webhook = arg;

    if (webhook->server)
        return true;
    const char *text = webhook->error.text;
    if (webhook->files && sw_certificate_files_why(webhook->files)[0])
        text = sw_certificate_files_why(webhook->files);
    else if (!text[0])
        text = "no certificate in the Secret yet";
    sw_buf_puts(why, text);
    return false;
}

uint16_t sw_webhook_port(const struct sw_webhook *webhook)
{
    return webhook->server ? sw_http_server_port(webhook->server) : 0;
}

void sw_webhook_drain(struct sw_webhook *webhook)
{
    webhook->is_draining = true;
    if (webhook->server)
        sw_http_server_drain(webhook->server);
}

void sw_webhook_finish(struct sw_webhook *webhook, uint64_t timeout_ms, void (*done)(void *arg),
                       void *arg)
{
    if (webhook->server)
        sw_http_server_finish(webhook->server, timeout_ms, done, arg);
    else
        done(arg);
}

static void on_closed(void *arg)
{
    struct sw_webhook *webhook = arg;

    sw_buf_done(&webhook->out);
    sw_free(webhook->address);
    sw_free(webhook);
}

void sw_webhook_close(struct sw_webhook *webhook)
{
    if (!webhook)
        return;
    webhook->core = NULL;
    sw_certificate_files_close(webhook->files);
    webhook->files = NULL;
    if (webhook->server)
        sw_http_server_close(webhook->server, on_closed, webhook);
    else
        on_closed(webhook);
}
