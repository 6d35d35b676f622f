/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that says when each request came in, when its answer was handed over, and when each piece
 * of a watch was: so that a benchmark can tell the time of a client from the time of the server.
 *
 * One line for each, in the order in which they happened, fields separated by tabs:
 *
 *     NS  ID  request  USER  PEER  METHOD  TARGET  BODY
 *     NS  ID  answer   STATUS  BYTES
 *     NS  ID  piece    TEXT
 *
 * NS: CLOCK_MONOTONIC when the whole request was there, or before the answer or piece was handed to
 * the connection: encrypting and sending it counts as the client's time, never the other way
 * round. ID: the same number for all of one request. PEER: address and port of the client. In BODY
 * and TEXT, which are JSON, line feeds and tabs are blanks. Bodies of answers are not in it. The
 * file is complete when it is closed.
 */
#ifndef TOOLS_SIM_TRACE_H
#define TOOLS_SIM_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct sw_error;
struct sw_sim_trace;

/* Makes the file, or empties it. */
int sw_sim_trace_open(const char *path, struct sw_sim_trace **ret_trace, struct sw_error *error);
/* A negative code where something could not be written; frees it either way. Takes NULL. */
int sw_sim_trace_close(struct sw_sim_trace *trace);

/* The clock of NS. */
uint64_t sw_sim_trace_now(void);
/* The number of the next request, from 1. trace NULL: 0; nothing is written by the others then. */
uint64_t sw_sim_trace_number(struct sw_sim_trace *trace);
/* Of one request, as it came. */
struct sw_sim_trace_request {
    const char *user; /* NULL: nobody we know */
    const char *peer;
    const char *method;
    const char *path;
    const char *query; /* "" where there is none */
    const char *body;
    size_t body_len;
};
void sw_sim_trace_request(struct sw_sim_trace *trace, uint64_t ns, uint64_t id,
                          const struct sw_sim_trace_request *request);
void sw_sim_trace_answer(struct sw_sim_trace *trace, uint64_t ns, uint64_t id, int status,
                         size_t bytes);
void sw_sim_trace_piece(struct sw_sim_trace *trace, uint64_t ns, uint64_t id, const char *text,
                        size_t len);

#endif
