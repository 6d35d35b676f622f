/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which paths of a SteppedRollout are read, and where they go.
 */
#include "kind.h"

static const struct sw_bind metric_fields[] = {
    SW_BIND("/name", SW_BIND_STRING, struct step_metric, name),
    SW_BIND("/thresholdRange", SW_BIND_RAW, struct step_metric, threshold_range, .limit = 1024),
    SW_BIND("/interval", SW_BIND_STRING, struct step_metric, interval),
    SW_BIND("/query", SW_BIND_STRING, struct step_metric, query),
    SW_BIND("/provider", SW_BIND_PRESENT, struct step_metric, has_provider),
    SW_BIND("/provider/type", SW_BIND_STRING, struct step_metric, provider_type),
    SW_BIND("/provider/address", SW_BIND_STRING, struct step_metric, provider_address),
    SW_BIND("/provider/secretRef/name", SW_BIND_STRING, struct step_metric, provider_secret),
    SW_BIND("/provider/insecureSkipVerify", SW_BIND_BOOL, struct step_metric, insecure_skip_verify),
    SW_BIND("/templateRef/name", SW_BIND_STRING, struct step_metric, template_name),
    SW_BIND("/templateRef/namespace", SW_BIND_STRING, struct step_metric, template_namespace),
    SW_BIND("/templateVariables", SW_BIND_LABELS, struct step_metric, variables),
    SW_BIND_END,
};

static const struct sw_bind webhook_fields[] = {
    SW_BIND("/name", SW_BIND_STRING, struct step_webhook, name),
    SW_BIND("/type", SW_BIND_STRING, struct step_webhook, type),
    SW_BIND("/url", SW_BIND_STRING, struct step_webhook, url),
    SW_BIND("/timeout", SW_BIND_STRING, struct step_webhook, timeout),
    SW_BIND("/retries", SW_BIND_INT32, struct step_webhook, retries),
    SW_BIND("/metadata", SW_BIND_LABELS, struct step_webhook, metadata),
    SW_BIND("/muteAlert", SW_BIND_BOOL, struct step_webhook, mute_alert),
    SW_BIND("/disableTLS", SW_BIND_BOOL, struct step_webhook, disable_tls),
    SW_BIND_END,
};

static const struct sw_bind check_fields[] = {
    SW_BIND("/name", SW_BIND_STRING, struct step_check, name),
    SW_BIND("/type", SW_BIND_STRING, struct step_check, type),
    SW_BIND("/value", SW_BIND_STRING, struct step_check, value),
    SW_BIND("/range", SW_BIND_STRING, struct step_check, range),
    SW_BIND("/passed", SW_BIND_BOOL, struct step_check, has_passed),
    SW_BIND("/at", SW_BIND_TIME, struct step_check, at_us),
    SW_BIND("/message", SW_BIND_STRING, struct step_check, message),
    SW_BIND_END,
};

static const struct sw_bind fields[] = {
    SW_BIND("/metadata/finalizers", SW_BIND_STRINGS, struct stepped, finalizers),
    SW_BIND("/spec/targetRef/apiVersion", SW_BIND_STRING, struct stepped, target_api_version),
    SW_BIND("/spec/targetRef/kind", SW_BIND_STRING, struct stepped, target_kind),
    SW_BIND("/spec/targetRef/name", SW_BIND_STRING, struct stepped, target_name),
    SW_BIND("/spec/steps", SW_BIND_RAW, struct stepped, steps),
    SW_BIND("/spec/stepSize", SW_BIND_RAW, struct stepped, step_size),
    SW_BIND("/spec/progressDeadlineSeconds", SW_BIND_INT32, struct stepped,
            progress_deadline_seconds, .otherwise = 600),
    SW_BIND("/spec/analysis/interval", SW_BIND_STRING, struct stepped, interval),
    SW_BIND("/spec/analysis/iterations", SW_BIND_INT32, struct stepped, iterations, .otherwise = 1),
    SW_BIND("/spec/analysis/threshold", SW_BIND_INT32, struct stepped, threshold, .otherwise = 1),
    SW_BIND("/spec/analysis/metrics", SW_BIND_LIST, struct stepped, metrics,
            .element = metric_fields, .element_size = sizeof(struct step_metric)),
    SW_BIND("/spec/analysis/webhooks", SW_BIND_LIST, struct stepped, webhooks,
            .element = webhook_fields, .element_size = sizeof(struct step_webhook)),
    SW_BIND("/spec/analysis/pods", SW_BIND_PRESENT, struct stepped, has_pods),
    SW_BIND("/spec/analysis/pods/maxRestarts", SW_BIND_INT32, struct stepped, max_restarts),
    SW_BIND("/spec/analysis/pods/maxUnready", SW_BIND_RAW, struct stepped, max_unready),
    SW_BIND("/spec/onFailure", SW_BIND_ENUM, struct stepped, on_failure),
    SW_BIND("/spec/skipAnalysis", SW_BIND_BOOL, struct stepped, skips_analysis),
    SW_BIND("/spec/suspend", SW_BIND_BOOL, struct stepped, is_suspended),
    SW_BIND("/spec/deadMan", SW_BIND_BOOL, struct stepped, has_dead_man),
    SW_BIND("/status/phase", SW_BIND_ENUM, struct stepped, phase),
    SW_BIND("/status/activity", SW_BIND_ENUM, struct stepped, activity),
    SW_BIND("/status/message", SW_BIND_STRING, struct stepped, message),
    SW_BIND("/status/currentStep", SW_BIND_INT32, struct stepped, current_step),
    SW_BIND("/status/steps", SW_BIND_INT32, struct stepped, step_count),
    SW_BIND("/status/step", SW_BIND_STRING, struct stepped, step_text),
    SW_BIND("/status/updated", SW_BIND_STRING, struct stepped, updated_text),
    SW_BIND("/status/stop", SW_BIND_INT32, struct stepped, stop),
    SW_BIND("/status/updatedReplicas", SW_BIND_INT32, struct stepped, updated_replicas),
    SW_BIND("/status/replicas", SW_BIND_INT32, struct stepped, replicas),
    SW_BIND("/status/iterations", SW_BIND_INT32, struct stepped, passed_rounds),
    SW_BIND("/status/failedChecks", SW_BIND_INT32, struct stepped, failed_checks),
    SW_BIND("/status/lastAppliedHash", SW_BIND_STRING, struct stepped, last_applied_hash),
    SW_BIND("/status/lastPromotedHash", SW_BIND_STRING, struct stepped, last_promoted_hash),
    SW_BIND("/status/failedHash", SW_BIND_STRING, struct stepped, failed_hash),
    SW_BIND("/status/promotedRevision", SW_BIND_STRING, struct stepped, promoted_revision),
    SW_BIND("/status/checks", SW_BIND_LIST, struct stepped, checks, .element = check_fields,
            .element_size = sizeof(struct step_check)),
    SW_BIND("/status/stepStartedAt", SW_BIND_TIME, struct stepped, step_started_us),
    SW_BIND("/status/lastRoundAt", SW_BIND_TIME, struct stepped, last_round_us),
    SW_BIND("/status/lastTransitionTime", SW_BIND_TIME, struct stepped, last_transition_us),
    SW_BIND("/status/observedGeneration", SW_BIND_INT64, struct stepped, observed_generation),
    SW_BIND("/status/conditions", SW_BIND_CONDITIONS, struct stepped, conditions),
    SW_BIND_END,
};

static const char *const annotations[] = {"slipway.dev/", NULL};

const struct sw_kind step_kind = {
    .group = "slipway.dev",
    .version = "v1alpha1",
    .kind = "SteppedRollout",
    .plural = "steppedrollouts",
    .size = sizeof(struct stepped),
    .fields = fields,
    .annotations = annotations,
};
