/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport seam (kube/transport.h) straight into the simulated API server, with the faults of
 * a network in between. Client and server live on virtual loops, which may be two with skewed
 * clocks: what is on its way to the server waits on a timer of the server's loop, what is on its
 * way back on one of the client's. Who turns the loops turns the network; a loop that is not turned
 * is a process that was stopped, and finds all of it afterwards.
 *
 * Faults, each drawn from the wire's own random numbers: a request that never arrives; an answer
 * lost after the request was carried out; both also followed by the client's repetition on a new
 * connection, where the HTTP client would repeat it; a delay of each way, so that answers overtake
 * each other; an error instead of an answer (409, 410, 429 with Retry-After, 500, 503, 504, the
 * last three also after the request was carried out); a list that breaks off; a watch that is cut,
 * or that is silent for ever (half open); a connection to an API server whose watch cache is behind
 * (cache.h).
 */
#ifndef TOOLS_SIM_DIRECT_H
#define TOOLS_SIM_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_loop;
struct sw_sim_api;
struct sw_sim_cache;
struct sw_sim_wire;
struct sw_transport;

/* In 1/10 000 of the requests, or of the pieces of a watch. Zeroed: a perfect network with the
 * delays alone. */
struct sw_sim_wire_faults {
    uint64_t delay_min_ms, delay_max_ms; /* of each way */
    unsigned lose_request, lose_answer, break_stream, freeze_stream;
    unsigned answer_409, answer_410, answer_429, answer_500, answer_503, answer_504;
    unsigned slow; /* delayed by up to slow_max_ms more */
    uint64_t slow_max_ms;
    unsigned behind; /* gets, lists and watches that are answered by one that may be behind */
};

struct sw_sim_wire *sw_sim_wire_new(struct sw_loop *server_loop, struct sw_sim_api *api,
                                    uint64_t seed);
/* Every transport was closed before. */
struct sw_sim_wire *sw_sim_wire_free(struct sw_sim_wire *wire);
/* For what is sent, or comes, from now on. Copied. */
void sw_sim_wire_set_faults(struct sw_sim_wire *wire, const struct sw_sim_wire_faults *faults);
/* The caches of the other API servers, of which `behind` chooses one by chance. Borrowed until no
 * transport is open any more. */
void sw_sim_wire_set_caches(struct sw_sim_wire *wire, struct sw_sim_cache *const *caches,
                            size_t count);
/* Every connection breaks now, and none can be made until it is whole again. */
void sw_sim_wire_set_broken(struct sw_sim_wire *wire, bool is_broken);
/* Requests on their way arrive although their sender is dead or has reset the connection (late
 * packets): off, they are lost with it; on, all of a dead one do, and half of those that were
 * reset, since a reset travels behind what was sent before. */
void sw_sim_wire_set_late_packets(struct sw_sim_wire *wire, bool is_on);

/* Of one client process, under that user; freed by its ops->close. client_loop: where its events
 * come. */
struct sw_transport *sw_sim_wire_open(struct sw_sim_wire *wire, struct sw_loop *client_loop,
                                      const char *username, const char *user_agent);

/* Counts since the start, for the report. */
struct sw_sim_wire_counts {
    uint64_t requests, lost_requests, lost_answers, broken, frozen, errors, slowed, behind;
};
struct sw_sim_wire_counts sw_sim_wire_counts(const struct sw_sim_wire *wire);

/* ---- looking and lying ---- */

/* As it arrives at the server. target and body may be replaced (they are the wire's: sw_free, and
 * new memory). */
struct sw_sim_wire_request {
    const char *method;
    char *target;
    char *body; /* NULL: none */
    size_t body_len;
    const char *content_type; /* NULL: none */
    bool is_watch;
};

/* What no network does: so that a test can show that its checks would find a fault. Each may be
 * NULL. */
struct sw_sim_wire_liar {
    /* True: it is carried out. False: it is not, and is answered by *ret_status and *ret_body (new
     * memory). */
    bool (*on_request)(void *arg, struct sw_sim_wire_request *request, int *ret_status,
                       char **ret_body);
    /* A whole answer, or a piece of a watch, which may be replaced: *body is new memory of *len
     * bytes. */
    void (*on_answer)(void *arg, const struct sw_sim_wire_request *request, int *status,
                      char **body, size_t *len);
    void *arg;
    /* How many ms it travels longer; asked as it would arrive, once. No lie, but a delay of a
     * request that is chosen. */
    uint64_t (*postpone)(void *arg, const struct sw_sim_wire_request *request);
};
/* Borrowed; NULL: the truth. */
void sw_sim_wire_set_liar(struct sw_sim_wire *wire, const struct sw_sim_wire_liar *liar);

#endif
