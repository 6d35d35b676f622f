{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* The name of all objects. The release's is not part of it: there is one slipway in a cluster. */}}
{{- define "slipway.name" -}}
{{- .Values.fullnameOverride | default .Values.nameOverride | default .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "slipway.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "slipway.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* As kube-deployment-coordinator's, so that a Deployment of the same name can be taken over: they cannot be changed. */}}
{{- define "slipway.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "slipway.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "slipway.labels" -}}
{{ include "slipway.commonLabels" . }}
{{ include "slipway.selector" . }}
{{- end -}}

{{/* Of what is not found by the selector: component, beside the rest. Call: (list . "webhook"). */}}
{{- define "slipway.labelsOf" -}}
{{- $root := first . -}}
{{ include "slipway.commonLabels" $root }}
app.kubernetes.io/name: {{ $root.Values.nameOverride | default $root.Chart.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{- define "slipway.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "slipway.webhookConfiguration" -}}
{{- .Values.webhook.name | default (include "slipway.name" .) -}}
{{- end -}}

{{- define "slipway.webhookService" -}}
{{- .Values.webhook.serviceName | default (printf "%s-webhook" (include "slipway.name" .)) -}}
{{- end -}}

{{/* cert-manager, files or self; "" without a webhook. */}}
{{- define "slipway.certificates" -}}
{{- if not .Values.webhook.enabled -}}
{{- else if .Values.webhook.certManager.enabled -}}
cert-manager
{{- else -}}
{{- .Values.webhook.certificates | default (ternary "files" "self" (not (empty .Values.webhook.caBundle))) -}}
{{- end -}}
{{- end -}}

{{- define "slipway.webhookSecret" -}}
{{- if eq (include "slipway.certificates" .) "cert-manager" -}}
{{- .Values.webhook.certManager.secretName -}}
{{- else -}}
{{- .Values.webhook.secretName | default (printf "%s-webhook" (include "slipway.name" .)) -}}
{{- end -}}
{{- end -}}

{{/* "true" or "". Two that both write undo each other's work, so several elect one in any case. */}}
{{- define "slipway.elects" -}}
{{- if or .Values.leaderElection.enabled (gt (int .Values.replicaCount) 1) -}}true{{- end -}}
{{- end -}}

{{/* Names of the modules that run, as YAML. */}}
{{- define "slipway.modules" -}}
{{- if and .Values.modules.stepping.enabled (not .Values.modules.pausing.enabled) -}}
{{- fail "modules.stepping.enabled: what it steps is paused by the module pausing; set modules.pausing.enabled as well" -}}
{{- end -}}
{{- $names := list -}}
{{- range $name, $module := .Values.modules -}}
{{- if $module.enabled -}}{{- $names = append $names $name -}}{{- end -}}
{{- end -}}
{{- toYaml $names -}}
{{- end -}}

{{/* slipway.yaml, what needs a restart. */}}
{{- define "slipway.settings" -}}
{{- $certificates := include "slipway.certificates" . -}}
{{- $webhook := dict "bindAddress" "0" -}}
{{- if .Values.webhook.enabled -}}
{{- $webhook = dict "bindAddress" ":9443" "configurationName" (include "slipway.webhookConfiguration" .) "certificates" (ternary "self" "files" (eq $certificates "self")) "serviceName" (include "slipway.webhookService" .) -}}
{{- if eq $certificates "self" -}}
{{- $_ := set $webhook "secretName" (include "slipway.webhookSecret" .) -}}
{{- else -}}
{{- $_ := set $webhook "certDir" "/run/slipway/tls" -}}
{{- end -}}
{{- end -}}
{{- $election := dict "enabled" (eq (include "slipway.elects" .) "true") "id" (.Values.leaderElection.id | default "slipway") -}}
{{- range $key := list "leaseDuration" "renewDeadline" "retryPeriod" -}}
{{- with index $.Values.leaderElection $key -}}{{- $_ := set $election $key . -}}{{- end -}}
{{- end -}}
{{- $metrics := dict "bindAddress" (printf ":%d" (int .Values.metricsPort)) -}}
{{- if not .Values.metrics.secure -}}{{- $_ := set $metrics "secure" false -}}{{- end -}}
{{- if .Values.metrics.secretName -}}{{- $_ := set $metrics "certDir" "/run/slipway/metrics-tls" -}}{{- end -}}
{{- $settings := dict "modules" (include "slipway.modules" . | fromYamlArray) "webhook" $webhook "leaderElection" $election "metrics" $metrics "healthProbe" (dict "bindAddress" (printf ":%d" (int .Values.healthPort))) -}}
{{- with .Values.watchNamespace -}}{{- $_ := set $settings "namespace" . -}}{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The rest of it, which holds as soon as it changes. */}}
{{- define "slipway.liveSettings" -}}
{{- $settings := dict "log" .Values.log "client" (dict "qps" (int .Values.client.qps) "burst" (int .Values.client.burst)) -}}
{{- with .Values.stopDelay -}}{{- $_ := set $settings "stopDelay" . -}}{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* Names of the modules that run and have a file, as YAML. Those of coordination and stepping are there even if they are empty:
     one more would be another Pod template, and what a file says is read again without a restart. */}}
{{- define "slipway.configuredModules" -}}
{{- $names := list -}}
{{- range $name, $module := .Values.modules -}}
{{- if and $module.enabled (or $module.config (has $name (list "coordination" "stepping"))) -}}{{- $names = append $names $name -}}{{- end -}}
{{- end -}}
{{- toYaml $names -}}
{{- end -}}

{{/* The volume with slipway.yaml and modules.d. One ConfigMap, so that all of a change comes at once. */}}
{{- define "slipway.configVolume" -}}
name: config
configMap:
  name: {{ include "slipway.name" . }}
  items:
    - key: slipway.yaml
      path: slipway.yaml
    {{- range include "slipway.configuredModules" . | fromYamlArray }}
    - key: modules.d.{{ . }}.yaml
      path: modules.d/{{ . }}.yaml
    {{- end }}
{{- end -}}

{{/* Where Pods of ours may run, and with what. */}}
{{- define "slipway.scheduling" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
