{{/* Names and labels that several templates share. */}}

{{- define "fish-tts.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "fish-tts.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "fish-tts.fullname" .) -}}
{{- end -}}

{{- define "fish-tts.selector" -}}
app.kubernetes.io/name: fish-tts-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fish-tts.labels" -}}
{{ include "fish-tts.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: fish-tts
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Image of a component: (list $ "engine") */}}
{{- define "fish-tts.image" -}}
{{- $root := index . 0 -}}
{{- printf "%s%s:%s" $root.Values.images.registry (index $root.Values.images (index . 1)) ($root.Values.images.tag | default $root.Chart.AppVersion) -}}
{{- end -}}
