/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes: named checks, and the text that answers /healthz, /livez and /readyz, as Kubernetes' own
 * components answer (k8s.io/apiserver/pkg/server/healthz; controller-runtime's healthz, too):
 *
 *   /readyz                  "ok"; 500 with all checks where one fails
 *   /readyz?verbose          all checks
 *   /readyz?exclude=NAME     all but that one; may stand there several times
 *   /readyz/NAME             that one alone: "ok", or 500 with the reason
 *
 * Unlike them, which withhold the reasons, since theirs are others' words: ours say what is missing
 * and hold no secret, and whoever looks at a probe wants to know. Whether this process leads, or
 * the API server is there right now, is no business of either: else an outage of it would restart
 * us, and an update of ourselves would never end.
 */
#ifndef SW_RUNTIME_HEALTH_H
#define SW_RUNTIME_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

struct sw_buf;

/* True: well. Else *why, empty before, says what is wrong. */
typedef bool (*sw_check_fn)(void *arg, struct sw_buf *why);

struct sw_check {
    const char *name;
    bool is_liveness; /* counts for /healthz, else for /readyz */
    sw_check_fn fn;
    void *arg;
};

enum { SW_CHECKS_MAX = 16 };

/* Lives inside another struct; zeroed memory has no checks. */
struct sw_health {
    struct sw_check checks[SW_CHECKS_MAX];
    size_t count;
};

void sw_health_add(struct sw_health *health, const struct sw_check *check);
/* Appends the answer to out and returns its status: 200, 404 (no such path), or 500. */
int sw_health_answer(const struct sw_health *health, const char *path, const char *query,
                     struct sw_buf *out);
/* Every check of readiness, for the log: false with the first reason in *why ("NAME: ..."). */
bool sw_health_is_ready(const struct sw_health *health, struct sw_buf *why);

#endif
