/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which paths of a MetricTemplate are read, and where they go.
 */
#include "metric_template.h"

static const struct sw_bind fields[] = {
    SW_BIND("/spec/provider/type", SW_BIND_ENUM, struct step_metric_template, type),
    SW_BIND("/spec/provider/address", SW_BIND_STRING, struct step_metric_template, address),
    SW_BIND("/spec/provider/secretRef/name", SW_BIND_STRING, struct step_metric_template, secret),
    SW_BIND("/spec/provider/headers", SW_BIND_RAW, struct step_metric_template, headers),
    SW_BIND("/spec/provider/insecureSkipVerify", SW_BIND_BOOL, struct step_metric_template,
            insecure_skip_verify),
    SW_BIND("/spec/query", SW_BIND_STRING, struct step_metric_template, query),
    SW_BIND_END,
};

const struct sw_kind step_metric_template_kind = {
    .group = "flagger.app",
    .version = "v1beta1",
    .kind = "MetricTemplate",
    .plural = "metrictemplates",
    .size = sizeof(struct step_metric_template),
    .fields = fields,
};
