/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated API server behind HTTP(S): who asks is found out here, faults are done here, and
 * the rest goes to api.h.
 *
 * Authentication: a bearer token. The admin's is told at the start and belongs to user "admin" of
 * group system:masters. Tokens of service accounts are made by POST
 * /api/v1/namespaces/NS/serviceaccounts/NAME/token, as the real server makes them: a JSON Web Token
 * (RFC 7519) whose "sub" says who it is. Its signature is empty, and not looked at: this is no
 * server to keep secrets. No token: 401.
 */
#ifndef TOOLS_SIM_FRONT_H
#define TOOLS_SIM_FRONT_H

#include <stdint.h>

struct sw_error;
struct sw_log;
struct sw_loop;
struct sw_sim_api;
struct sw_sim_fault_rules;
struct sw_sim_front;
struct sw_sim_trace;
struct sw_tls_config;

struct sw_sim_front_options {
    const char *address;       /* "127.0.0.1:0" */
    struct sw_tls_config *tls; /* NULL: plain HTTP */
    const char *admin_token;
    struct sw_sim_trace *trace; /* NULL: none */
};

/* api, rules and trace are borrowed. */
int sw_sim_front_open(struct sw_loop *loop, struct sw_sim_api *api,
                      struct sw_sim_fault_rules *rules, const struct sw_sim_front_options *options,
                      const struct sw_log *log, struct sw_sim_front **ret_front,
                      struct sw_error *error);
uint16_t sw_sim_front_port(const struct sw_sim_front *front);
/* Calls under way are cancelled. Frees itself when the sockets are closed. Takes NULL. */
void sw_sim_front_close(struct sw_sim_front *front);

#endif
