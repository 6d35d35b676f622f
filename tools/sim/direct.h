/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport seam (kube/transport.h) straight into the simulated API server, with the faults of
 * a network in between. Client and server may live on different virtual loops (skewed clocks): each
 * event is handed over through the wire, which the driver of the simulation turns.
 *
 * Faults, each drawn from the wire's own random numbers: a request that never arrives; an answer
 * lost after the request was carried out; a delay for each; answers of one client out of order; an
 * error instead of an answer (409, 410, 429 with Retry-After, 500, 503, 504); a stream that is cut,
 * or that is silent for ever (half open); a read that is answered from an older state of the store.
 */
#ifndef TOOLS_SIM_DIRECT_H
#define TOOLS_SIM_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

struct sw_loop;
struct sw_sim_api;
struct sw_sim_wire;
struct sw_transport;

/* In 1/10 000 of the requests, or of the pieces of a stream. Zeroed: a perfect network with the
 * delays alone. */
struct sw_sim_wire_faults {
    uint64_t delay_min_ms, delay_max_ms; /* of each way */
    unsigned lose_request, lose_answer, break_stream, freeze_stream;
    unsigned answer_409, answer_410, answer_429, answer_500, answer_503, answer_504;
    unsigned slow; /* delayed by up to slow_max_ms more */
    uint64_t slow_max_ms;
};

struct sw_sim_wire *sw_sim_wire_new(struct sw_loop *server_loop, struct sw_sim_api *api,
                                    uint64_t seed);
struct sw_sim_wire *sw_sim_wire_free(struct sw_sim_wire *wire);
void sw_sim_wire_set_faults(struct sw_sim_wire *wire, const struct sw_sim_wire_faults *faults);
/* Every connection breaks now, and none can be made until it is whole again. */
void sw_sim_wire_set_broken(struct sw_sim_wire *wire, bool is_broken);
/* Requests on their way arrive although their sender is dead (late packets); off: they are lost
 * with it. */
void sw_sim_wire_set_late_packets(struct sw_sim_wire *wire, bool is_on);

/* Of one client process, under that user; freed by its ops->close. client_loop: where its events
 * come. */
struct sw_transport *sw_sim_wire_open(struct sw_sim_wire *wire, struct sw_loop *client_loop,
                                      const char *username, const char *user_agent);

/* Counts since the start, for the report. */
struct sw_sim_wire_counts {
    uint64_t requests, lost_requests, lost_answers, broken, frozen, errors, slowed;
};
struct sw_sim_wire_counts sw_sim_wire_counts(const struct sw_sim_wire *wire);

#endif
