/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children. Over when the program has ended and both pipes with it; a pipe that stays open
 * (somebody else has inherited it) is given up a moment after the program. Killed for whatever
 * reason, its end is still awaited: libuv reaps it, and only then are the handles closed and the
 * memory freed.
 */
#include "base/child.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"

enum {
    OUTPUT,
    COMPLAINT,
    PIPES,
    PIECE_BYTES = 4096,
    HANDLES = PIPES + 1,
};

/* For a pipe that outlives the program. */
#define GRACE_MS UINT64_C(1000)

struct sw_child {
    struct sw_loop *loop;
    uv_process_t process;
    struct pipe {
        struct sw_child *child;
        uv_pipe_t handle;
        struct sw_buf buf;
        bool has_ended;
    } pipes[PIPES];
    char dropped[PIECE_BYTES];
    struct sw_timer timer; /* the deadline; after the end the grace */
    sw_child_fn fn;        /* NULL: told, or nobody wants to know */
    void *arg;
    int code;
    int exit_status, signal;
    bool has_exited;
    bool is_over;
    unsigned handles; /* open */
};

/* ---- the end of it ---- */

static void on_closed(uv_handle_t *handle)
{
    struct sw_child *child = handle->data;
    if (--child->handles > 0) {
        return;
    }
    for (size_t i = 0; i < PIPES; i++) {
        size_t len = child->pipes[i].buf.len;
        sw_free_secret(sw_buf_steal(&child->pipes[i].buf), len);
        sw_buf_done(&child->pipes[i].buf);
    }
    sw_free(child);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_closed);
    }
}

static void finish(struct sw_child *child)
{
    if (child->is_over) {
        return;
    }
    child->is_over = true;
    sw_timer_stop(&child->timer);
    struct sw_child_result result = {
        .code = child->code,
        .exit_status = child->exit_status,
        .signal = child->signal,
        .output = child->pipes[OUTPUT].buf.bytes,
        .output_len = child->pipes[OUTPUT].buf.len,
        .complaint = child->pipes[COMPLAINT].buf.bytes,
        .complaint_len = child->pipes[COMPLAINT].buf.len,
    };
    for (size_t i = 0; i < PIPES; i++) {
        close_handle((uv_handle_t *)&child->pipes[i].handle);
    }
    close_handle((uv_handle_t *)&child->process);
    if (child->fn) {
        child->fn(child->arg, &result); /* the memory goes when the handles are closed, later */
    }
}

static void finish_maybe(struct sw_child *child)
{
    bool is_dry = child->pipes[OUTPUT].has_ended && child->pipes[COMPLAINT].has_ended;
    if (child->has_exited && (is_dry || child->code || !child->fn)) {
        finish(child);
    }
}

/* Of what has exited the number may be somebody else's by now. */
static void kill_all(struct sw_child *child)
{
    if (!child->has_exited) {
        kill(-child->process.pid, SIGKILL);
    }
}

static void give_up(struct sw_child *child, int code)
{
    if (!child->code) {
        child->code = code;
        kill_all(child);
    }
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_child *child = container_of(timer, struct sw_child, timer);
    if (child->has_exited) {
        finish(child);
    } else {
        give_up(child, -ETIMEDOUT);
    }
}

static void on_exit_status(uv_process_t *process, int64_t exit_status, int signal)
{
    struct sw_child *child = process->data;
    child->has_exited = true;
    child->exit_status = (int)exit_status;
    child->signal = signal;
    sw_timer_start(&child->timer, GRACE_MS);
    finish_maybe(child);
}

void sw_child_kill(struct sw_child *child)
{
    if (!child || child->is_over) {
        return;
    }
    child->fn = NULL;
    sw_timer_stop(&child->timer);
    kill_all(child);
    finish_maybe(child);
}

/* ---- what it says ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    struct pipe *pipe = container_of((uv_pipe_t *)(void *)handle, struct pipe, handle);
    size_t room = SW_MIN(pipe->buf.limit_bytes - pipe->buf.len, (size_t)PIECE_BYTES);
    char *space = pipe->child->dropped;
    (void)suggested;
    if (room > 0) {
        sw_buf_reserve(&pipe->buf, room, &space);
    }
    *ret_buf = uv_buf_init(space, room > 0 ? (unsigned)room : PIECE_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct pipe *pipe = container_of((uv_pipe_t *)(void *)stream, struct pipe, handle);
    struct sw_child *child = pipe->child;
    if (len > 0 && buf->base != child->dropped) {
        sw_buf_commit(&pipe->buf, (size_t)len);
    } else if (len > 0 && pipe == &child->pipes[OUTPUT]) {
        give_up(child, SW_E_TOO_LARGE);
    } else if (len < 0) {
        uv_read_stop(stream);
        pipe->has_ended = true;
        finish_maybe(child);
    }
}

/* ---- the beginning of it ---- */

static int spawn(struct sw_child *child, const struct sw_child_options *o)
{
    uv_stdio_container_t stdio[3] = {{.flags = UV_IGNORE}};
    for (size_t i = 0; i < PIPES; i++) {
        stdio[i + 1].flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE;
        stdio[i + 1].data.stream = (uv_stream_t *)&child->pipes[i].handle;
    }
    /* libuv wants them without const and changes nothing. */
    union {
        char *const *given;
        char **wanted;
    } argv = {.given = o->argv}, env = {.given = o->env};
    uv_process_options_t options = {
        .exit_cb = on_exit_status,
        .file = o->path,
        .args = argv.wanted,
        .env = env.wanted,
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = SW_ARRAY_SIZE(stdio),
        .stdio = stdio,
    };
    int rc = uv_spawn(sw_loop_uv(child->loop), &child->process, &options);
    for (size_t i = 0; i < PIPES && !rc; i++) {
        uv_read_start((uv_stream_t *)&child->pipes[i].handle, on_alloc, on_read);
    }
    return rc;
}

int sw_child_run(struct sw_loop *loop, const struct sw_child_options *o, sw_child_fn fn, void *arg,
                 struct sw_child **ret_child)
{
    if (!sw_loop_uv(loop)) {
        return -ENOTSUP;
    }
    struct sw_child *child = SW_NEW(struct sw_child);
    const size_t limits[PIPES] = {o->output_limit_bytes, o->complaint_limit_bytes};
    child->loop = loop;
    child->fn = fn;
    child->arg = arg;
    child->handles = HANDLES;
    sw_timer_init(&child->timer, loop, on_timer);
    for (size_t i = 0; i < PIPES; i++) {
        struct pipe *pipe = &child->pipes[i];
        pipe->child = child;
        sw_buf_init(&pipe->buf, limits[i]);
        sw_assert(uv_pipe_init(sw_loop_uv(loop), &pipe->handle, 0) == 0);
        pipe->handle.data = child;
    }
    int rc = spawn(child, o);
    child->process.data = child;
    if (rc) {
        child->fn = NULL;
        child->has_exited = true;
        finish(child);
        return rc;
    }
    sw_timer_start(&child->timer, o->timeout_ms);
    *ret_child = child;
    return 0;
}

/* ---- where it lies ---- */

static int look_at(const char *path)
{
    struct stat about;
    if (stat(path, &about)) {
        return -errno;
    }
    return S_ISREG(about.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

static int search(const char *command, const char *folders, char **ret_path)
{
    int worst = -ENOENT;
    for (const char *at = folders; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        int len = (int)strcspn(at, ":");
        if (*at != '/') {
            continue; /* whatever lies in the current folder is not what was meant */
        }
        SW_AUTO(char, sw_free) path = sw_asprintf("%.*s/%s", len, at, command);
        int rc = look_at(path);
        if (!rc) {
            *ret_path = sw_steal(&path);
            return 0;
        }
        worst = rc == -EACCES ? rc : worst;
    }
    return worst;
}

int sw_child_find(const char *command, char **ret_path)
{
    if (!strchr(command, '/')) {
        return search(command, getenv("PATH"), ret_path);
    }
    int rc = look_at(command);
    if (!rc) {
        *ret_path = sw_strdup(command);
    }
    return rc == -ENOTDIR ? -ENOENT : rc;
}
