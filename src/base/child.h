/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is run for what it prints: without a shell, with nothing to read, in a bounded
 * time and with bounded output. It leads a session of its own, so that what it has started itself
 * is killed with it. On a real loop only.
 */
#ifndef SW_BASE_CHILD_H
#define SW_BASE_CHILD_H

#include <stddef.h>
#include <stdint.h>

struct sw_child;
struct sw_loop;

struct sw_child_options {
    const char *path;             /* of the file; it is not searched for */
    char *const *argv;            /* with the name it goes by, and NULL at the end */
    char *const *env;             /* all of it: "NAME=value", and NULL at the end */
    uint64_t timeout_ms;          /* then it is killed */
    size_t output_limit_bytes;    /* of standard output; beyond it is killed */
    size_t complaint_limit_bytes; /* of standard error; what comes beyond is dropped */
};

/* Texts have a NUL behind them and are overwritten after the call. */
struct sw_child_result {
    int code;        /* 0: it ended by itself; -ETIMEDOUT, SW_E_TOO_LARGE: killed for that */
    int exit_status; /* with code 0 */
    int signal;      /* with code 0: that ended it; 0: none */
    const char *output;
    size_t output_len;
    const char *complaint;
    size_t complaint_len;
};

/* Exactly once, after sw_child_run has returned 0; never after sw_child_kill. */
typedef void (*sw_child_fn)(void *arg, const struct sw_child_result *result);

/* Fails as execve(2) does; -ENOTSUP on a virtual loop. Waits for the beginning of the program, not
 * for more. Whoever it starts may outlive it and hold its output open: that is not waited for. */
int sw_child_run(struct sw_loop *loop, const struct sw_child_options *options, sw_child_fn fn,
                 void *arg, struct sw_child **ret_child);
/* SIGKILL to it and its session; the loop runs until it is reaped. Takes NULL. */
void sw_child_kill(struct sw_child *child);

/* Where the command lies: the path itself where it has a slash in it, else in the folders of PATH
 * (absolute ones). -ENOENT; -EACCES: it is there, but cannot be run. New memory. */
int sw_child_find(const char *command, char **ret_path);

#endif
