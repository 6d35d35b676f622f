/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The typed view of a SteppedRollout (slipway.dev/v1alpha1), spec and status, as the API server has
 * it: absent texts are "", defaults are filled in by the CRD or, where it was not asked, by spec.h.
 */
#ifndef SW_STEPPING_KIND_H
#define SW_STEPPING_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include <slipway/kind.h>

#define STEP_POLICY "stepping"
#define STEP_FINALIZER "slipway.dev/stepping"
/* Set by people on a SteppedRollout, removed when obeyed. */
#define STEP_PROMOTE "slipway.dev/promote" /* "step", "full" */
#define STEP_ABORT "slipway.dev/abort"     /* "true"; "release" lets a deletion go on */
#define STEP_RETRY "slipway.dev/retry"     /* "true" */
/* On a DaemonSet: how many Pods at once. */
#define STEP_MAX_UNAVAILABLE "slipway.dev/max-unavailable"

struct step_metric {
    const char *name;
    struct sw_raw threshold_range; /* {"min": 1.5, "max": 2} */
    const char *interval;          /* duration; "": analysis.interval */
    const char *query;
    const char *provider_type; /* "prometheus" */
    const char *provider_address;
    const char *provider_secret; /* secretRef.name */
    bool insecure_skip_verify;
    bool has_provider;
    const char *template_name; /* templateRef.name; "": none */
    const char *template_namespace;
    struct sw_labels variables; /* templateVariables */
};

struct step_webhook {
    const char *name;
    const char *type; /* "confirm-rollout", "pre-rollout", ... */
    const char *url;
    const char *timeout; /* duration */
    int32_t retries;
    struct sw_labels metadata;
    bool mute_alert;
    bool disable_tls; /* the server's certificate is not verified */
};

/* An element of status.checks. */
struct step_check {
    const char *name;
    const char *type;  /* "metric", "pods", or the webhook's type */
    const char *value; /* "0.52", "NaN", "" */
    const char *range; /* ">= 0.99", "0 .. 1", "" */
    bool has_passed;
    int64_t at_us;
    const char *message;
};

struct stepped {
    struct sw_object meta;
    struct sw_strings finalizers; /* metadata.finalizers */
    /* spec */
    const char *target_api_version, *target_kind, *target_name;
    struct sw_raw steps;               /* [1, "25%"]; text NULL: absent */
    struct sw_raw step_size;           /* 1 or "10%" */
    int32_t progress_deadline_seconds; /* absent: 600 */
    const char *interval;              /* duration */
    int32_t iterations;                /* absent: 1 */
    int32_t threshold;                 /* absent: 1 */
    struct sw_list metrics;            /* struct step_metric */
    struct sw_list webhooks;           /* struct step_webhook */
    bool has_pods;                     /* analysis.pods is there */
    int32_t max_restarts;
    struct sw_raw max_unready; /* a duration, or a number of seconds; absent: 0 */
    const char *on_failure;    /* "Retreat", "Rollback", "Hold"; "": Retreat */
    bool skips_analysis, is_suspended, has_dead_man;
    /* status */
    const char *phase, *activity, *message;
    int32_t current_step, step_count; /* status.currentStep, status.steps */
    int32_t stop;                     /* Pods that may be updated now */
    int32_t updated_replicas, replicas;
    int32_t passed_rounds; /* status.iterations */
    int32_t failed_checks; /* failed rounds of this rollout */
    const char *last_applied_hash, *last_promoted_hash, *failed_hash; /* 32 hex digits or "" */
    const char *promoted_revision; /* name of the ReplicaSet or ControllerRevision */
    struct sw_list checks;         /* struct step_check */
    int64_t step_started_us, last_round_us, last_transition_us;
    int64_t observed_generation;
    const char *step_text, *updated_text; /* status.step "2/5", status.updated "3/10" */
    struct sw_conditions conditions;
};

static inline const struct stepped *step_as_stepped(const struct sw_object *object)
{
    return (const struct stepped *)(const void *)object;
}

extern const struct sw_kind step_kind;

#endif
