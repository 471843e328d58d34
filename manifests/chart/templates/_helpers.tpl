{{/* SPDX-License-Identifier: Apache-2.0

One Rayhook per cluster: every object is called rayhook, and a second release fails at once, in place of two that
would both change every pod. */}}

{{- define "rayhook.selector" -}}
app.kubernetes.io/name: rayhook
app.kubernetes.io/component: webhook
{{- end }}

{{- define "rayhook.labels" -}}
app.kubernetes.io/name: rayhook
app.kubernetes.io/part-of: rayhook
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "rayhook.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* What a pod of ours may do: nothing that the restricted Pod Security Standard forbids. */}}
{{- define "rayhook.podSecurity" -}}
runAsNonRoot: true
{{- if not .Values.openshift }}
runAsUser: 65532
runAsGroup: 65532
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "rayhook.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The configuration file; a change of it changes the ConfigMap's name, and so rolls out. */}}
{{- define "rayhook.config" -}}
# Written by the chart's value `config`.
{{ if .Values.config }}{{ toYaml .Values.config }}{{ end }}
{{- end }}

{{- define "rayhook.configName" -}}
rayhook-config-{{ include "rayhook.config" . | sha256sum | trunc 10 }}
{{- end }}
