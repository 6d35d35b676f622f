/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups. A job is a name and those who ask for it; it belongs to the loop, but for what is under
 * its lock, which it shares with its thread. A thread that nobody waits for any more goes on, since
 * nothing can stop it, and its job with it: whoever asks for the name meanwhile joins. The loop
 * does not wait for it to run dry or to be closed.
 *
 *     WAITING   as many threads as may be are running    RUNNING
 *     RUNNING   the resolver is asked                    told, and gone; left behind where the loop
 *                                                        is closed
 */
#include "net/look_up.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/list.h"
#include "base/loop.h"
#include "base/util.h"

enum { STACK_BYTES = 1024 * 1024 }; /* of address space; resolvers are modules of anybody */

/* Of a loop. */
struct look_ups {
    struct sw_loop *loop;
    struct sw_link running, waiting; /* struct job */
    unsigned threads;
};

struct job {
    struct sw_link link;
    struct look_ups *of;
    struct sw_link askers; /* struct sw_look_up */
    uv_async_t done;
    bool is_running;

    pthread_mutex_t lock;
    char *host;
    unsigned refs;       /* the loop's and the thread's */
    bool is_left_behind; /* nobody may be told */
    int code;
    struct addrinfo *list;
};

struct sw_look_up {
    struct sw_link link;
    struct job *job;
    sw_looked_up_fn fn;
    void *arg;
};

static struct job *job_of(struct sw_link *link)
{
    return container_of(link, struct job, link);
}

/* The lock is held, and is given back. */
static void unref_locked(struct job *job)
{
    bool is_last = --job->refs == 0;
    pthread_mutex_unlock(&job->lock);
    if (!is_last) {
        return;
    }
    if (job->list) {
        freeaddrinfo(job->list);
    }
    pthread_mutex_destroy(&job->lock);
    sw_free(job->host);
    sw_free(job);
}

/* ---- the thread ---- */

/* libuv's numbers for the resolver's. */
static int code_of(int rc)
{
    switch (rc) {
    case 0:
        return 0;
    case EAI_AGAIN:
        return UV_EAI_AGAIN;
    case EAI_FAIL:
        return UV_EAI_FAIL;
    case EAI_MEMORY:
        return UV_EAI_MEMORY;
    case EAI_SYSTEM:
        return errno ? -errno : UV_EAI_FAIL;
    default:
        return UV_EAI_NONAME;
    }
}

static void *run(void *arg)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct job *job = arg;
    struct addrinfo *list = NULL;
    int code = code_of(getaddrinfo(job->host, NULL, &hints, &list));
    pthread_mutex_lock(&job->lock);
    job->code = code;
    job->list = code ? NULL : list;
    if (!job->is_left_behind) {
        uv_async_send(&job->done);
    }
    unref_locked(job);
    return NULL;
}

/* Signals are the loop's. */
static int start_thread(struct job *job)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    int rc = pthread_attr_init(&attributes);
    if (rc) {
        return -rc;
    }
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, &attributes, run, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return -rc;
}

/* ---- jobs ---- */

static void on_closed(uv_handle_t *handle)
{
    struct job *job = container_of((uv_async_t *)handle, struct job, done);
    pthread_mutex_lock(&job->lock);
    unref_locked(job);
}

/* All who ask are told. Each may ask again, or cancel another. */
static void tell(struct job *job, int code, const struct addrinfo *list)
{
    for (struct sw_link *link; (link = sw_link_first(&job->askers));) {
        struct sw_look_up *asker = container_of(link, struct sw_look_up, link);
        sw_looked_up_fn fn = asker->fn;
        void *arg = asker->arg;
        sw_link_remove(link);
        sw_free(asker);
        fn(arg, code, list);
    }
}

static void start_waiting(struct look_ups *all);

static void end(struct job *job)
{
    struct look_ups *all = job->of;
    sw_link_remove(&job->link);
    all->threads--;
    tell(job, job->code, job->list);
    uv_close((uv_handle_t *)&job->done, on_closed);
    start_waiting(all);
}

static void on_done(uv_async_t *done)
{
    struct job *job = container_of(done, struct job, done);
    pthread_mutex_lock(&job->lock); /* what the thread has written is seen */
    pthread_mutex_unlock(&job->lock);
    end(job);
}

static void start(struct job *job)
{
    struct look_ups *all = job->of;
    sw_link_add_last(&all->running, &job->link);
    all->threads++;
    job->is_running = true;
    job->refs++;
    int rc = start_thread(job); /* from here on the lock counts */
    if (rc) {
        job->refs--;
        job->code = rc;
        uv_async_send(&job->done);
    }
}

static void start_waiting(struct look_ups *all)
{
    struct sw_link *first;
    while (all->threads < SW_LOOK_UPS_MAX && (first = sw_link_first(&all->waiting))) {
        start(job_of(first));
    }
}

/* ---- those of a loop ---- */

static void leave_behind(struct job *job)
{
    sw_assert(!sw_link_is_used(&job->askers)); /* whoever asks has cancelled */
    sw_link_remove(&job->link);
    pthread_mutex_lock(&job->lock);
    job->is_left_behind = true;
    pthread_mutex_unlock(&job->lock);
    uv_close((uv_handle_t *)&job->done, on_closed);
}

static void on_loop_close(void *arg)
{
    struct look_ups *all = arg;
    SW_LIST_EACH (link, &all->running) {
        leave_behind(job_of(link));
    }
    SW_LIST_EACH (link, &all->waiting) {
        leave_behind(job_of(link));
    }
    sw_free(all);
}

static struct look_ups *look_ups_of(struct sw_loop *loop)
{
    struct look_ups *all = sw_loop_kept(loop);
    if (!all) {
        all = SW_NEW(struct look_ups);
        all->loop = loop;
        sw_link_init(&all->running);
        sw_link_init(&all->waiting);
        sw_loop_keep(loop, all, on_loop_close);
    }
    return all;
}

static struct job *find(struct sw_link *list, const char *host)
{
    SW_LIST_EACH (link, list) {
        if (strcmp(job_of(link)->host, host) == 0) {
            return job_of(link);
        }
    }
    return NULL;
}

static int job_new(struct look_ups *all, const char *host, struct job **ret_job)
{
    struct job *job = SW_NEW(struct job);
    int rc = uv_async_init(sw_loop_uv(all->loop), &job->done, on_done);
    if (rc) {
        sw_free(job);
        return rc;
    }
    job->of = all;
    job->host = sw_strdup(host);
    job->refs = 1;
    pthread_mutex_init(&job->lock, NULL);
    sw_link_init(&job->link);
    sw_link_init(&job->askers);
    sw_link_add_last(&all->waiting, &job->link);
    *ret_job = job;
    return 0;
}

/* A loop runs for those who ask, and not for what nothing can stop. */
static void look_at_askers(struct job *job)
{
    if (sw_link_is_used(&job->askers)) {
        uv_ref((uv_handle_t *)&job->done);
    } else if (job->is_running) {
        uv_unref((uv_handle_t *)&job->done);
    } else {
        leave_behind(job);
    }
}

int sw_look_up(struct sw_loop *loop, const char *host, sw_looked_up_fn fn, void *arg,
               struct sw_look_up **ret_look_up)
{
    struct look_ups *all = look_ups_of(loop);
    struct job *job = find(&all->running, host);
    job = job ? job : find(&all->waiting, host);
    int rc = job ? 0 : job_new(all, host, &job);
    if (rc) {
        return rc;
    }
    struct sw_look_up *asker = SW_NEW(struct sw_look_up);
    asker->job = job;
    asker->fn = fn;
    asker->arg = arg;
    sw_link_init(&asker->link);
    sw_link_add_last(&job->askers, &asker->link);
    look_at_askers(job);
    start_waiting(all);
    *ret_look_up = asker;
    return 0;
}

void sw_look_up_cancel(struct sw_look_up *look_up)
{
    struct job *job = look_up->job;
    sw_link_remove(&look_up->link);
    sw_free(look_up);
    look_at_askers(job);
}
