/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of doctor that ask the cluster have in common.
 */
#ifndef KS_DOCTOR_ASK_H
#define KS_DOCTOR_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor.h"
#include "session.h"

struct ks_doctor {
    struct ks_session *session;
    struct ks_findings findings;
    const char *own_namespace, *service_account;
    const char *deployment;    /* of slipway; NULL: not known */
    const char *configuration; /* of webhooks, in which slipway is named; NULL */
    int64_t replicas;          /* of slipway; -1: not known */
    bool has_lease;
    struct ks_world *rollouts; /* SteppedRollouts; NULL: none, or they cannot be seen */
};

/* A finding for what could not be read, and is not just missing. */
void ks_doctor_unknown(struct ks_doctor *doctor, const char *check, const char *what,
                       const struct ks_answer *answer);
/* The webhook configurations, and whether the API server gets answers. */
void ks_doctor_webhooks(struct ks_doctor *doctor);

#endif
