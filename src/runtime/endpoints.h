/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening sockets for probes and metrics, GET and HEAD only. Probes are plain HTTP, as
 * kubelets speak it. Metrics are that too, for everybody; or, secure, HTTPS (metrics_certificate.h)
 * for those who may read them (metrics_access.h). Both on one address: plain metrics only, since a
 * socket speaks either the one or the other.
 */
#ifndef SW_RUNTIME_ENDPOINTS_H
#define SW_RUNTIME_ENDPOINTS_H

#include <stdbool.h>
#include <stdint.h>

struct sw_client;
struct sw_endpoints;
struct sw_error;
struct sw_health;
struct sw_log;
struct sw_loop;
struct sw_metrics;

struct sw_endpoints_options {
    const char *health_address;  /* as sw_tcp_listen; "0": none */
    const char *metrics_address; /* the same address as for health: one socket for both */
    bool is_metrics_secure;
    const char *metrics_cert_folder; /* with tls.crt and tls.key; NULL: made here */
    struct sw_client *client;        /* to ask about those who read them; NULL where not secure */
};

/* health, metrics and client are borrowed. The error names the address and why it cannot be bound.
 */
int sw_endpoints_open(struct sw_loop *loop, const struct sw_endpoints_options *options,
                      const struct sw_health *health, struct sw_metrics *metrics,
                      const struct sw_log *log, struct sw_endpoints **ret_endpoints,
                      struct sw_error *error);
/* Takes NULL. What it borrowed may be freed at once. */
void sw_endpoints_close(struct sw_endpoints *endpoints);
/* "", "0" and NULL: this address is not to be listened on. */
bool sw_address_is_off(const char *address);
uint16_t sw_endpoints_health_port(const struct sw_endpoints *endpoints); /* 0: none */
uint16_t sw_endpoints_metrics_port(const struct sw_endpoints *endpoints);

#endif
