/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SteppedRollout, parsed, as tests of the analysis need it: shop/web with the target web-target,
 * no metric and no webhook until a test adds some.
 */
#ifndef TESTS_UNIT_STEPPING_SAMPLE_H
#define TESTS_UNIT_STEPPING_SAMPLE_H

#include "../test.h"
#include "spec.h"

struct sample {
    struct stepped object;
    struct step_metric metrics[4];
    struct step_measure measures[4];
    struct step_webhook webhooks[8];
    struct step_hook hooks[8];
    struct step_spec spec;
};

static inline void sample_init(struct sample *s)
{
    *s = (struct sample){
        .object = {.meta = {.namespace_ = "shop", .name = "web"}, .target_name = "web-target"},
    };
    s->spec = (struct step_spec){.object = &s->object, .measures = s->measures, .hooks = s->hooks};
}

/* One that must not be above 0.01. */
static inline struct step_metric *sample_metric(struct sample *s, const char *name,
                                                const char *address, const char *query)
{
    struct step_metric *metric = &s->metrics[s->spec.measure_count];

    *metric = (struct step_metric){
        .name = name,
        .interval = "",
        .query = query,
        .provider_type = "prometheus",
        .provider_address = address,
        .provider_secret = "",
        .has_provider = true,
        .template_name = "",
        .template_namespace = "",
    };
    s->measures[s->spec.measure_count++] = (struct step_measure){
        .object = metric, .has_max = true, .max = 0.01, .range = "<= 0.01", .interval_ms = 60000};
    return metric;
}

static inline struct step_webhook *sample_hook(struct sample *s, enum step_hook_type type,
                                               const char *name, const char *url)
{
    struct step_webhook *webhook = &s->webhooks[s->spec.hook_count];

    *webhook = (struct step_webhook){.name = name, .type = "sample", .url = url};
    s->hooks[s->spec.hook_count++] =
        (struct step_hook){.object = webhook, .type = type, .timeout_ms = 10000};
    return webhook;
}

#endif
