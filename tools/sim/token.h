/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bearer tokens of service accounts: unsigned JSON Web Tokens (RFC 7519, RFC 7515 "none").
 */
#ifndef TOOLS_SIM_TOKEN_H
#define TOOLS_SIM_TOKEN_H

#include <stdint.h>

/* New text: "system:serviceaccount:NAMESPACE:NAME", valid until then (seconds since 1970). */
char *sw_sim_token_new(const char *namespace_, const char *name, int64_t until_s);
/* The subject (new), or NULL if it is no such token or is over. */
char *sw_sim_token_subject(const char *token, int64_t now_s);

#endif
