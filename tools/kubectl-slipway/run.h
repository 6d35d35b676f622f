/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands. Each does its work on an open session, writes to session->out or says on standard
 * error what went wrong, and returns what the process ends with.
 */
#ifndef KS_RUN_H
#define KS_RUN_H

#include "options.h"

struct ks_session;

enum ks_exit ks_run_status(struct ks_session *session);
enum ks_exit ks_run_why(struct ks_session *session);
enum ks_exit ks_run_plan(struct ks_session *session);
/* hold, release, skip, restart. */
enum ks_exit ks_run_deployment(struct ks_session *session);
enum ks_exit ks_run_release_all(struct ks_session *session);
/* suspend, resume. */
enum ks_exit ks_run_coordination(struct ks_session *session);
/* promote, abort, retry. */
enum ks_exit ks_run_rollout(struct ks_session *session);
enum ks_exit ks_run_doctor(struct ks_session *session);

/* status -w: until interrupted. */
enum ks_exit ks_watch(struct ks_session *session);

#endif
