/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream, of which every byte means that something has happened: an event, or an error that
 * ends it. Opened again by whoever reads the Lease next, at its pace.
 */
#include "kube/lease_watch.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "kube/client.h"
#include "net/url.h"

enum {
    WATCH_SECONDS = 300,
    /* A leader writes every few seconds. Longer silence is that of a connection which is dead, or
     * of a Lease that nobody has: looking from time to time finds the end of either. */
    SILENCE_MS = 60 * 1000,
    REFUSED_MS = 5 * 60 * 1000,
};

struct sw_lease_watch {
    struct sw_loop *loop;
    struct sw_client *client;
    const struct sw_log *log;
    void (*fn)(void *arg);
    void *arg;
    char *path; /* without the version */
    struct sw_client_stream_call *call;
    uint64_t refused_until_ms;
};

static void on_open(void *arg, int status)
{
    (void)arg;
    (void)status;
}

static void on_bytes(void *arg, const char *bytes, size_t len)
{
    struct sw_lease_watch *watch = arg;

    (void)bytes;
    (void)len;
    watch->fn(watch->arg);
}

/* 400 to 499 without 410, which is a version that is too old, and 429: it will be the same again.
 */
static void on_end(void *arg, const struct sw_stream_reply *reply)
{
    struct sw_lease_watch *watch = arg;
    int status = reply->code ? 0 : reply->status;

    watch->call = NULL;
    if (status < 400 || status >= 500 || status == 410 || status == 429)
        return;
    watch->refused_until_ms = sw_now_ms(watch->loop) + REFUSED_MS;
    sw_log_debug(watch->log, "lease cannot be watched: its release is noticed a little later",
                 SW_INT("status", status), SW_STR("message", reply->why.message));
}

static const struct sw_client_stream_events events = {on_open, on_bytes, on_end};

struct sw_lease_watch *sw_lease_watch_new(struct sw_loop *loop, struct sw_client *client,
                                          const char *collection_path, const char *name,
                                          const struct sw_log *log, void (*fn)(void *arg),
                                          void *arg)
{
    struct sw_lease_watch *watch = SW_NEW(struct sw_lease_watch);

    watch->loop = loop;
    watch->client = client;
    watch->log = log;
    watch->fn = fn;
    watch->arg = arg;
    /* A name of an object has nothing in it that would have to be encoded. */
    watch->path = sw_asprintf("%s?watch=true&fieldSelector=metadata.name%%3D%s&timeoutSeconds=%d"
                              "&resourceVersion=",
                              collection_path, name, WATCH_SECONDS);
    return watch;
}

struct sw_lease_watch *sw_lease_watch_free(struct sw_lease_watch *watch)
{
    if (!watch)
        return NULL;
    sw_lease_watch_close(watch);
    sw_free(watch->path);
    return sw_free(watch);
}

void sw_lease_watch_open(struct sw_lease_watch *watch, const char *resource_version)
{
    if (watch->call || sw_now_ms(watch->loop) < watch->refused_until_ms)
        return;
    struct sw_buf path;
    sw_buf_init(&path, SIZE_MAX);
    sw_buf_puts(&path, watch->path);
    sw_url_encode(&path, resource_version);
    struct sw_client_stream_options options = {
        .path = path.bytes,
        .lane = "lease-watch",
        .silence_timeout_ms = SILENCE_MS,
        .total_timeout_ms = (WATCH_SECONDS + 15) * UINT64_C(1000),
    };
    if (sw_client_stream(watch->client, &options, &events, watch, &watch->call))
        watch->call = NULL; /* with the next look */
    sw_buf_done(&path);
}

void sw_lease_watch_close(struct sw_lease_watch *watch)
{
    sw_client_stream_call_cancel(sw_steal(&watch->call));
}
