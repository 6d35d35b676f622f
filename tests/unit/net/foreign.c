/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign peers: see the header. A child gets a signal when the test dies (PR_SET_PDEATHSIG), so
 * that a failed check or a time-out leaves nothing behind.
 */
#include "foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <uv.h>

#include "base/file.h"
#include "base/loop.h"
#include "base/util.h"
#include "test.h"

#define PARTS_MAX 48

/* ---- files ---- */

static char *folder;

void folder_make(void)
{
    folder = test_folder_new();
    struct child child;
    child_start(&child, (const char *[]){CERTIFICATES, folder, NULL});
    if (child_wait(&child)) {
        fprintf(stderr, "certificates failed; see %s/openssl.log\n", folder);
        abort();
    }
}

void folder_remove(void)
{
    test_folder_done(folder);
}

const char *folder_path(const char *name)
{
    static char paths[64][128];
    static unsigned next;
    char *path = paths[next++ % SW_ARRAY_SIZE(paths)];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

char *folder_read(const char *name)
{
    char *text = NULL;
    size_t len;
    sw_assert(sw_file_read(folder_path(name), 1 << 20, &text, &len, NULL) == 0);
    return text;
}

/* ---- children ---- */

void child_start(struct child *child, const char *const *argv)
{
    int in[2], out[2];
    sw_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    *child = (struct child){.in = in[1], .out = out[0]};
    sw_buf_init(&child->text, 1 << 24);
    char *args[PARTS_MAX] = {NULL};
    for (size_t i = 0; argv[i]; i++) {
        sw_assert(i + 1 < PARTS_MAX);
        args[i] = sw_strdup(argv[i]);
    }
    pid_t parent = getpid();
    child->pid = fork();
    sw_assert(child->pid >= 0);
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 ||
            dup2(out[1], 2) < 0) {
            _exit(126);
        }
        execvp(args[0], args);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    for (size_t i = 0; args[i]; i++) {
        sw_free(args[i]);
    }
}

void child_write(struct child *child, const char *text)
{
    sw_assert(write(child->in, text, strlen(text)) == (ssize_t)strlen(text));
}

void child_close_input(struct child *child)
{
    if (child->in >= 0) {
        close(child->in);
        child->in = -1;
    }
}

/* False at the end of its output. */
static bool read_some(struct child *child)
{
    char bytes[4096];
    ssize_t len;
    do {
        len = read(child->out, bytes, sizeof(bytes));
    } while (len < 0 && errno == EINTR);
    return len > 0 && sw_buf_append(&child->text, bytes, (size_t)len) == 0;
}

const char *child_expect(struct child *child, const char *text)
{
    const char *found;
    while (!(found = strstr(child->text.bytes, text))) {
        if (!read_some(child)) {
            fprintf(stderr, "wanted \"%s\" from a child, got: %s\n", text, child->text.bytes);
            abort();
        }
    }
    return found + strlen(text);
}

struct child_reader {
    uv_pipe_t pipe;
    struct child *child;
    void (*on_end)(void *arg);
    void *arg;
    char bytes[4096];
};

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    (void)suggested;
    struct child_reader *reader = container_of((uv_pipe_t *)handle, struct child_reader, pipe);
    *ret_buf = uv_buf_init(reader->bytes, sizeof(reader->bytes));
}

static void on_reader_closed(uv_handle_t *handle)
{
    struct child_reader *reader = container_of((uv_pipe_t *)handle, struct child_reader, pipe);
    void (*on_end)(void *) = reader->on_end;
    void *arg = reader->arg;
    reader->child->reader = NULL;
    reader->child->out = -1;
    sw_free(reader);
    if (on_end) {
        on_end(arg);
    }
}

static void on_text(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct child_reader *reader = container_of((uv_pipe_t *)stream, struct child_reader, pipe);
    if (len > 0) {
        sw_buf_append(&reader->child->text, buf->base, (size_t)len);
    } else if (len < 0) {
        uv_close((uv_handle_t *)&reader->pipe, on_reader_closed);
    }
}

void child_read(struct child *child, struct sw_loop *loop, void (*on_end)(void *arg), void *arg)
{
    struct child_reader *reader = SW_NEW(struct child_reader);
    reader->child = child;
    reader->on_end = on_end;
    reader->arg = arg;
    child->reader = reader;
    sw_assert(uv_pipe_init(sw_loop_uv(loop), &reader->pipe, 0) == 0);
    sw_assert(uv_pipe_open(&reader->pipe, child->out) == 0);
    sw_assert(uv_read_start((uv_stream_t *)&reader->pipe, give_buffer, on_text) == 0);
}

static int reap(struct child *child)
{
    int status;
    pid_t pid;
    do {
        pid = waitpid(child->pid, &status, 0);
    } while (pid < 0 && errno == EINTR);
    sw_buf_done(&child->text);
    return pid == child->pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int child_end(struct child *child)
{
    sw_assert(!child->reader);
    child_close_input(child);
    kill(child->pid, SIGTERM);
    if (child->out >= 0) {
        close(child->out);
    }
    return reap(child);
}

int child_wait(struct child *child)
{
    sw_assert(!child->reader);
    child_close_input(child);
    while (child->out >= 0 && read_some(child)) {
    }
    if (child->out >= 0) {
        close(child->out);
    }
    return reap(child);
}

uint16_t child_openssl_server(struct child *child, const char *const *more)
{
    const char *argv[PARTS_MAX] = {"openssl", "s_server", "-accept", "127.0.0.1:0"};
    size_t count = 4;
    for (size_t i = 0; more[i]; i++) {
        sw_assert(count + 1 < PARTS_MAX);
        argv[count++] = more[i];
    }
    child_start(child, argv);
    const char *port = child_expect(child, "ACCEPT 127.0.0.1:");
    while (!strchr(port, '\n')) {
        sw_assert(read_some(child));
        port = child_expect(child, "ACCEPT 127.0.0.1:");
    }
    return (uint16_t)strtoul(port, NULL, 10);
}
