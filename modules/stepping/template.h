/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query templates as MetricTemplates of Flagger have them: Go's text/template with one function for
 * each placeholder, of which only what queries need is understood here. Pure.
 *
 *     {{ name }} {{ namespace }} {{ target }} {{ service }} {{ ingress }} {{ route }} {{ interval
 * }}
 *     {{ variables.X }} {{ index variables "X" }}
 *     {{- name -}}     takes the white space before and behind with it
 *
 * A comment, as C's, between {{ and }} is left out.
 *
 * https://docs.flagger.app/usage/metrics#custom-metrics, https://pkg.go.dev/text/template
 */
#ifndef SW_STEPPING_TEMPLATE_H
#define SW_STEPPING_TEMPLATE_H

#include <slipway/arena.h>
#include <slipway/object.h>

/* Of the query when it is filled in. Prometheus has no limit of its own; Go's HTTP server takes 1
 * MiB of head, the proxies before it often 8 KiB. */
#define STEP_QUERY_LIMIT (64 * 1024)

/* What the placeholders stand for. No string is NULL. */
struct step_template_model {
    const char *name, *namespace_; /* of the SteppedRollout */
    const char *target;            /* targetRef.name */
    const char *service, *ingress, *route;
    const char *interval;
    struct sw_labels variables; /* templateVariables */
};

/* 0 and the text in the arena; -EINVAL, and *ret_why names the placeholder that is unknown, or
 * what is not understood. */
SW_MUST_USE int step_template_render(const char *query, const struct step_template_model *model,
                                     struct sw_arena *arena, const char **ret_text,
                                     const char **ret_why);

#endif
