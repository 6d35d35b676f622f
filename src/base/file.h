/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that matter while we run: read whole with a limit, and watched for replacement. Kubernetes
 * replaces mounted files by swapping the symbolic link ..data, so the folder is watched, not the
 * inode, and contents are compared.
 */
#ifndef SW_BASE_FILE_H
#define SW_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct sw_error;
struct sw_loop;
struct sw_file_watch;

/* New memory with a NUL behind the bytes (the caller frees it, with sw_free_secret where it is a
 * secret). -ENOENT and its kin; SW_E_TOO_LARGE beyond limit_bytes. error, if not NULL, names the
 * path. Blocks: for small local files at start and when they have changed. */
int sw_file_read(const char *path, size_t limit_bytes, char **ret_bytes, size_t *ret_len,
                 struct sw_error *error);

/* Called when the contents of any of the files differ from what they were at the last call (or at
 * open); a file that cannot be read is a content of its own. */
typedef void (*sw_file_watch_fn)(void *arg);

/* A path that ends in "/" is a folder: its content are the names in it, but for those that begin
 * with a dot. Watches by inotify (uv_fs_event) on the folders and looks besides every poll_ms (0:
 * never; NFS and some mounts send no events). Works on a virtual loop by polling alone. Does not
 * keep the loop alive. */
int sw_file_watch_open(struct sw_loop *loop, const char *const *paths, size_t count,
                       uint64_t poll_ms, sw_file_watch_fn fn, void *arg,
                       struct sw_file_watch **ret_watch);
/* What the files hold now counts as told of: by whoever reads them for another reason, before it
 * does. */
void sw_file_watch_see(struct sw_file_watch *watch);
void sw_file_watch_close(struct sw_file_watch *watch); /* takes NULL */

#endif
