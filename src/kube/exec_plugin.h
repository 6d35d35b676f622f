/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A credential plugin (exec of a kubeconfig): runs it when credentials are wanted, before they
 * expire and after the API server has refused them; never twice at once, and less and less often
 * while it fails. It says how each run went; what is done with the credentials is the owner's
 * business.
 */
#ifndef SW_KUBE_EXEC_PLUGIN_H
#define SW_KUBE_EXEC_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

struct sw_error;
struct sw_exec_credential;
struct sw_exec_plugin;
struct sw_kubeconfig;
struct sw_log;
struct sw_loop;

struct sw_exec_plugin_events {
    /* What a run has brought; a member may be taken by setting it to NULL. A negative code, with
     * words, where it is of no use: then the run has failed. */
    int (*take)(void *arg, struct sw_exec_credential *credential, struct sw_error *error);
    /* Each run has its end, whichever. May close the plugin. */
    void (*on_done)(void *arg);
};

/* Looks whether the command is there, and does not run it. config (with exec in it) is borrowed for
 * the plugin's life. The error of a missing command carries the kubeconfig's installHint. */
int sw_exec_plugin_open(struct sw_loop *loop, const struct sw_kubeconfig *config,
                        const struct sw_log *log, const struct sw_exec_plugin_events *events,
                        void *arg, struct sw_exec_plugin **ret_plugin, struct sw_error *error);
/* A run under way is killed. Takes NULL. */
void sw_exec_plugin_close(struct sw_exec_plugin *plugin);

/* Runs it, unless it runs already or has failed too short a time ago. True: it is running; on_done
 * follows, after this call. ca_pem: what the plugin is told of the authority; NULL: none. */
bool sw_exec_plugin_run(struct sw_exec_plugin *plugin, const char *ca_pem);
/* The same after a 401, at most once in 10 s: what is refused again at once would not be better. */
bool sw_exec_plugin_run_refused(struct sw_exec_plugin *plugin, const char *ca_pem);
/* Runs it again when four fifths of the time until then are over. */
void sw_exec_plugin_expect(struct sw_exec_plugin *plugin, int64_t expires_us);
/* Why the last run failed. */
const struct sw_error *sw_exec_plugin_error(const struct sw_exec_plugin *plugin);

#endif
