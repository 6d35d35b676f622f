/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a file whole, and watching files for another content.
 *
 * A watch looks at contents alone (their hash, or the error of reading): an event, or the passing
 * of poll_ms, is only a reason to look. Events come in bursts, and half-written files between them,
 * so a look follows an event after a short pause. A folder that is missing or was replaced is
 * watched again at the next look.
 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/error.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/util.h"

/* ---- reading ---- */

enum { FIRST_ROOM = 4096 };

/* Larger memory with the same bytes; the old ones are wiped, as they may be a secret. */
static char *grow(char *bytes, size_t len, size_t room)
{
    char *larger = sw_realloc(NULL, 1, room);
    if (len > 0) {
        memcpy(larger, bytes, len);
    }
    sw_free_secret(bytes, len);
    return larger;
}

static int read_all(int fd, size_t limit_bytes, char **ret_bytes, size_t *ret_len)
{
    struct stat st;
    if (fstat(fd, &st)) {
        return -errno;
    }
    if (S_ISDIR(st.st_mode)) {
        return -EISDIR;
    }
    /* One byte more than the file has, so that the end is seen without growing; one for the NUL. */
    size_t room = FIRST_ROOM;
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < limit_bytes) {
        room = SW_MAX(room, (size_t)st.st_size + 2);
    }
    char *bytes = grow(NULL, 0, room);
    size_t len = 0;
    int rc = 0;
    for (;;) {
        if (room - len < 2) {
            sw_assert(room <= SIZE_MAX / 2);
            bytes = grow(bytes, len, room * 2);
            room *= 2;
        }
        ssize_t got = read(fd, bytes + len, room - len - 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            rc = got < 0 ? -errno : 0;
            break;
        }
        len += (size_t)got;
        if (len > limit_bytes) {
            rc = SW_E_TOO_LARGE;
            break;
        }
    }
    if (rc) {
        sw_free_secret(bytes, len);
        return rc;
    }
    bytes[len] = '\0';
    *ret_bytes = bytes;
    *ret_len = len;
    return 0;
}

int sw_file_read(const char *path, size_t limit_bytes, char **ret_bytes, size_t *ret_len,
                 struct sw_error *error)
{
    /* O_NONBLOCK: a pipe without a writer must not hold us up; regular files take no notice. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int rc = fd < 0 ? -errno : 0;
    if (!rc) {
        rc = read_all(fd, limit_bytes, ret_bytes, ret_len);
        close(fd);
    }
    if (rc == SW_E_TOO_LARGE) {
        return sw_error_set(error, rc, "%s: larger than %zu bytes", path, limit_bytes);
    }
    if (rc) {
        return sw_error_set(error, rc, "%s: %s", path, sw_strerror(rc));
    }
    return 0;
}

/* ---- watching ---- */

enum {
    /* After an event: long enough for a writer to finish, short enough not to be noticed. */
    SETTLE_MS = 50,
    /* Contents are hashed; nothing that is watched (certificates, tokens, configuration) is near
     * this. */
    WATCH_LIMIT_BYTES = 16 * 1024 * 1024,
};

struct watched {
    char *path;
    int error;
    uint64_t hash;
};

struct folder {
    struct sw_file_watch *watch;
    char *path;
    uv_fs_event_t handle;
    bool is_open;     /* the handle is initialised and not closed */
    bool is_watching; /* and started */
};

struct sw_file_watch {
    struct sw_loop *loop;
    sw_file_watch_fn fn;
    void *arg;
    uint64_t poll_ms;
    struct sw_timer poll;
    struct sw_timer settle;
    struct watched *files;
    size_t count;
    struct folder *folders;
    size_t folder_count;
    size_t open_handles;
    bool is_closing;
};

static void watch_free(struct sw_file_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        sw_free(watch->files[i].path);
    }
    for (size_t i = 0; i < watch->folder_count; i++) {
        sw_free(watch->folders[i].path);
    }
    sw_free(watch->files);
    sw_free(watch->folders);
    sw_free(watch);
}

static int hash_file(const char *path, uint64_t *ret_hash)
{
    char *bytes = NULL;
    size_t len = 0;
    int rc = sw_file_read(path, WATCH_LIMIT_BYTES, &bytes, &len, NULL);
    if (!rc) {
        *ret_hash = sw_hash(bytes, len);
    }
    sw_free_secret(bytes, len);
    return rc;
}

/* A sum, because names come in any order. What is hidden changes with each swap of ..data. */
static int hash_names(const char *path, uint64_t *ret_hash)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    if (!folder) {
        return -errno;
    }
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] != '.') {
            *ret_hash += sw_hash(entry->d_name, strlen(entry->d_name));
        }
    }
    closedir(folder);
    return 0;
}

static bool is_folder(const char *path)
{
    size_t len = strlen(path);
    return len > 0 && path[len - 1] == '/';
}

/* True if the content is another than at the last look. */
static bool look_at(struct watched *file)
{
    uint64_t hash = 0;
    int rc = is_folder(file->path) ? hash_names(file->path, &hash) : hash_file(file->path, &hash);
    bool has_changed = rc != file->error || hash != file->hash;
    file->error = rc;
    file->hash = hash;
    return has_changed;
}

static void on_folder_event(uv_fs_event_t *handle, const char *name, int events, int status)
{
    struct folder *folder = container_of(handle, struct folder, handle);
    (void)name;
    (void)events;
    (void)status;
    if (!sw_timer_is_active(&folder->watch->settle)) {
        sw_timer_start(&folder->watch->settle, SETTLE_MS);
    }
}

/* A folder that is not there (yet) is tried again at each look; polling covers the time between. */
static void watch_folder(struct folder *folder)
{
    if (!folder->is_open) {
        return;
    }
    /* Always anew: the folder may have been replaced by another of its name. */
    uv_fs_event_stop(&folder->handle);
    folder->is_watching = uv_fs_event_start(&folder->handle, on_folder_event, folder->path, 0) == 0;
    uv_unref((uv_handle_t *)&folder->handle);
}

static bool look_at_all(struct sw_file_watch *watch)
{
    bool has_changed = false;
    for (size_t i = 0; i < watch->count; i++) {
        has_changed |= look_at(&watch->files[i]);
    }
    return has_changed;
}

static void look(struct sw_file_watch *watch)
{
    for (size_t i = 0; i < watch->folder_count; i++) {
        watch_folder(&watch->folders[i]);
    }
    if (look_at_all(watch)) {
        watch->fn(watch->arg); /* may close the watch */
    }
}

static void on_settled(struct sw_timer *timer)
{
    look(container_of(timer, struct sw_file_watch, settle));
}

static void on_poll(struct sw_timer *timer)
{
    struct sw_file_watch *watch = container_of(timer, struct sw_file_watch, poll);
    sw_timer_start(&watch->poll, watch->poll_ms);
    look(watch);
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return sw_strdup(".");
    }
    return slash == path ? sw_strdup("/") : sw_strndup(path, (size_t)(slash - path));
}

/* Adds the folder unless it is there; folders has room for one a file. */
static void add_folder(struct sw_file_watch *watch, char *path)
{
    for (size_t i = 0; i < watch->folder_count; i++) {
        if (strcmp(watch->folders[i].path, path) == 0) {
            sw_free(path);
            return;
        }
    }
    watch->folders[watch->folder_count++] = (struct folder){.watch = watch, .path = path};
}

static int open_folders(struct sw_file_watch *watch)
{
    uv_loop_t *uv = sw_loop_uv(watch->loop);
    for (size_t i = 0; uv && i < watch->folder_count; i++) {
        struct folder *folder = &watch->folders[i];
        int rc = uv_fs_event_init(uv, &folder->handle);
        if (rc) {
            return rc;
        }
        folder->is_open = true;
        watch->open_handles++;
        watch_folder(folder);
    }
    return 0;
}

int sw_file_watch_open(struct sw_loop *loop, const char *const *paths, size_t count,
                       uint64_t poll_ms, sw_file_watch_fn fn, void *arg,
                       struct sw_file_watch **ret_watch)
{
    struct sw_file_watch *watch = SW_NEW(struct sw_file_watch);
    *watch = (struct sw_file_watch){
        .loop = loop,
        .fn = fn,
        .arg = arg,
        .poll_ms = poll_ms,
        .count = count,
        .files = sw_calloc(count, sizeof(struct watched)),
        .folders = sw_calloc(count, sizeof(struct folder)),
    };
    sw_timer_init_weak(&watch->poll, loop, on_poll);
    sw_timer_init_weak(&watch->settle, loop, on_settled);
    for (size_t i = 0; i < count; i++) {
        watch->files[i].path = sw_strdup(paths[i]);
        add_folder(watch, folder_of(paths[i]));
    }
    int rc = open_folders(watch);
    if (rc) {
        sw_file_watch_close(watch);
        return rc;
    }
    look_at_all(watch); /* after the folders are watched, so that no change is missed */
    if (poll_ms) {
        sw_timer_start(&watch->poll, poll_ms);
    }
    *ret_watch = watch;
    return 0;
}

void sw_file_watch_see(struct sw_file_watch *watch)
{
    look_at_all(watch);
}

static void on_closed(uv_handle_t *handle)
{
    struct folder *folder = container_of((uv_fs_event_t *)handle, struct folder, handle);
    struct sw_file_watch *watch = folder->watch;
    if (--watch->open_handles == 0) {
        watch_free(watch);
    }
}

void sw_file_watch_close(struct sw_file_watch *watch)
{
    if (!watch || watch->is_closing) {
        return;
    }
    watch->is_closing = true;
    sw_timer_stop(&watch->poll);
    sw_timer_stop(&watch->settle);
    if (watch->open_handles == 0) {
        watch_free(watch);
        return;
    }
    for (size_t i = 0; i < watch->folder_count; i++) {
        if (watch->folders[i].is_open) {
            uv_close((uv_handle_t *)&watch->folders[i].handle, on_closed);
        }
    }
}
