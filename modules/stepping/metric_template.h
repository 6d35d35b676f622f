/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The typed view of a MetricTemplate of Flagger (flagger.app/v1beta1): where a metric is asked for,
 * and the query. Its CRD comes with Flagger and may be missing from a cluster: to be watched as
 * optional. https://docs.flagger.app/usage/metrics#custom-metrics
 */
#ifndef SW_STEPPING_METRIC_TEMPLATE_H
#define SW_STEPPING_METRIC_TEMPLATE_H

#include <stdbool.h>

#include <slipway/kind.h>

struct step_metric_template {
    struct sw_object meta;
    const char *type; /* "prometheus"; other types are Flagger's alone */
    const char *address;
    const char *secret;    /* secretRef.name: of the MetricTemplate's own namespace */
    struct sw_raw headers; /* {"X-Scope-OrgID": ["tenant"]} */
    bool insecure_skip_verify;
    const char *query;
};

static inline const struct step_metric_template *
step_as_metric_template(const struct sw_object *object)
{
    return (const struct step_metric_template *)(const void *)object;
}

extern const struct sw_kind step_metric_template_kind;

#endif
