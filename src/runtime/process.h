/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process: everything that the core does not know, wired to it. Credentials and the way to the
 * API server, sockets, signals, and the order in which all of it starts and stops.
 */
#ifndef SW_RUNTIME_PROCESS_H
#define SW_RUNTIME_PROCESS_H

struct sw_arguments;
struct sw_settings;

/* Exit statuses. */
enum {
    SW_EXIT_OK = 0,
    SW_EXIT_FAILED = 1,
    SW_EXIT_USAGE = 2, /* the command line, a configuration file or the kubeconfig is wrong */
};

/* Of what could not start because of `code`: SW_EXIT_USAGE where a file would have to be another
 * one, SW_EXIT_FAILED where the same may work later. */
int sw_exit_status_of(int code);

/*
 * Runs until SIGTERM or SIGINT, and returns the exit status. Stopping: readiness fails; reviews are
 * answered on, with "Connection: close"; no new keys; writes under way finish; records are written;
 * the lease is given back; the webhook stops listening and answers what has begun; then everything
 * closes and the loop ends by itself. A second signal ends the process at once.
 *
 * SIGHUP reads the configuration again, as do changes of its files: arguments and settings are what
 * slipway starts with. SIGUSR1 logs everything until the next one.
 */
int sw_process_run(const struct sw_arguments *arguments, const struct sw_settings *settings);

#endif
