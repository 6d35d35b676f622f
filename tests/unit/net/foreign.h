/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign peers for the tests of src/net: a temporary folder with certificates made by openssl, and
 * programs run as children. A child dies with the test, and is always reaped.
 */
#ifndef SW_TEST_NET_FOREIGN_H
#define SW_TEST_NET_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct sw_loop;

/* ---- files ---- */

/* Makes the folder and fills it; fails the test's program if it cannot. */
void folder_make(void);
void folder_remove(void);
/* The text of a file in it; new memory. */
char *folder_read(const char *name);
/* Its path; valid for the next 63 calls. */
const char *folder_path(const char *name);

/* ---- children ---- */

struct child {
    pid_t pid;
    int in;             /* its standard input, ours to write; -1: closed */
    int out;            /* its standard output and error, ours to read */
    struct sw_buf text; /* what was read of it */
    struct child_reader *reader;
};

/* argv: NULL-terminated, [0] looked up in PATH. */
void child_start(struct child *child, const char *const *argv);
void child_write(struct child *child, const char *text);
void child_close_input(struct child *child);
/* Reads, blocking, until the text has come; returns what follows it so far. */
const char *child_expect(struct child *child, const char *text);
/* Reads on the loop instead, so that what the child talks to can run. on_end when it has closed its
 * output. */
void child_read(struct child *child, struct sw_loop *loop, void (*on_end)(void *arg), void *arg);
/* Ends it (SIGTERM unless it has gone already), reaps it, frees. Its exit status, or -1. */
int child_end(struct child *child);
/* Waits until it has ended by itself; then as child_end. */
int child_wait(struct child *child);

/* openssl s_server on a free port of 127.0.0.1; more: NULL-terminated arguments. */
uint16_t child_openssl_server(struct child *child, const char *const *more);

#endif
