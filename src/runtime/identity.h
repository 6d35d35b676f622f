/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Under which name the API server knows us, so that reviews of our own writes are recognised:
 * the token's subject; else what the API server says when it is asked (SelfSubjectReview, from 1.26
 * on; else a TokenReview of our own token, where we may); else nothing ("").
 */
#ifndef SW_RUNTIME_IDENTITY_H
#define SW_RUNTIME_IDENTITY_H

struct sw_client;
struct sw_credentials;
struct sw_identity;
struct sw_log;
struct sw_loop;

/* username: "" if it cannot be found out. Comes again when it is another with new credentials; not
 * before open has returned. */
typedef void (*sw_identity_fn)(void *arg, const char *username);

struct sw_identity *sw_identity_open(struct sw_loop *loop, struct sw_client *client,
                                     struct sw_credentials *credentials, const struct sw_log *log,
                                     sw_identity_fn fn, void *arg);
void sw_identity_close(struct sw_identity *identity); /* takes NULL */

#endif
