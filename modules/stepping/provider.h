/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics providers: what is to be asked where for a metric of a SteppedRollout, and what the
 * answer means. One type is known, Prometheus (and what speaks its HTTP API: Thanos, Mimir,
 * VictoriaMetrics). Pure; round.c does the asking.
 *
 * As Flagger does it, so that its MetricTemplates serve unchanged:
 *   - GET ADDRESS/api/v1/query?query=...; the address may have a path, and a user and password
 *   - of several values the last one counts
 *   - a Secret with `token` means a bearer token, else it has `username` and `password`
 *   - no value, or NaN, fails the check
 *   - min and max themselves are within the range
 * Flagger: pkg/metrics/providers/prometheus.go, pkg/controller/scheduler_metrics.go.
 * Prometheus: https://prometheus.io/docs/prometheus/latest/querying/api/
 */
#ifndef SW_STEPPING_PROVIDER_H
#define SW_STEPPING_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>

#include <slipway/arena.h>
#include <slipway/fetch.h>

#include "metric_template.h"
#include "spec.h"
#include "template.h"

struct sw_secret;

#define STEP_QUERY_FIELDS 32 /* headers of a provider at most */

/* What is to be asked. Strings live in the arena. */
struct step_query {
    const char *url;   /* with the query in it */
    const char *place; /* for messages: scheme, host and port, without user and password */
    const char *secret_namespace, *secret; /* "": none */
    bool insecure_skip_verify;
    const struct sw_fetch_field *fields; /* the provider's headers */
    size_t field_count;
};

/* The model for the queries of a metric: service, ingress and route are the target's name, as in
 * Flagger where a Canary names none; the interval is in the units of PromQL. */
void step_metric_model(const struct stepped *object, const struct step_measure *measure,
                       struct sw_arena *arena, struct step_template_model *ret_model);

/* metric_template: that which measure->object->template_name names; NULL where it names none. 0;
 * -EINVAL, and *ret_why says which field is wrong: "query: {{ x }} is unknown; ...",
 * "MetricTemplate a/b: provider.type: ...". What comes from the SteppedRollout itself is without a
 * prefix, for the caller to say where it stands. */
SW_MUST_USE int step_query_make(const struct stepped *object, const struct step_measure *measure,
                                const struct step_metric_template *metric_template,
                                struct sw_arena *arena, struct step_query *ret_query,
                                const char **ret_why);

/* The value of Authorization from the Secret, in the arena, overwritten when that is freed.
 * -EINVAL: which key is missing or cannot be sent. */
SW_MUST_USE int step_query_authorization(const struct sw_secret *secret, struct sw_arena *arena,
                                         const char **ret_value, const char **ret_why);

/* ---- the answer ---- */

struct step_value {
    double number;    /* finite */
    const char *text; /* as Prometheus wrote it */
    size_t count;     /* of values in the answer; the last one is this */
};

/* 0, or -EINVAL, and *ret_why says what there is instead of a value: "HTTP 422: ...", "the query
 * yields no value", "NaN". *ret_text, "" or the value as it came ("NaN"), is for the status. */
SW_MUST_USE int step_prometheus_read(const struct sw_fetch_answer *answer, struct sw_arena *arena,
                                     struct step_value *ret_value, const char **ret_text,
                                     const char **ret_why);

/* Within the range; else *ret_why says how not: "0.52 is more than 0.01". */
bool step_value_is_within(const struct step_value *value, const struct step_measure *measure,
                          struct sw_arena *arena, const char **ret_why);

/* What a body that is not what was hoped for says: its first words on one line, "" where it has
 * none. */
SW_NONNULL const char *step_body_words(struct sw_arena *arena, const char *body, size_t len);

#endif
