{{/* Pieces of OpenAPI that both CRDs use. */}}

{{- define "fish-tts.crdLabels" -}}
app.kubernetes.io/name: fish-tts-crds
app.kubernetes.io/part-of: fish-tts
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* A duration such as 90s, 3m or 1h30m: (dict "default" "3m" "description" "…") */}}
{{- define "fish-tts.duration" -}}
type: string
default: {{ .default }}
maxLength: 16
pattern: ^([0-9]+(ms|s|m|h))+$
description: {{ .description | quote }}
{{- end -}}

{{- define "fish-tts.args" -}}
type: array
maxItems: 64
items:
  type: string
  maxLength: 4096
{{- end -}}

{{- define "fish-tts.env" -}}
type: array
description: More environment variables, as literal values.
maxItems: 64
x-kubernetes-list-type: map
x-kubernetes-list-map-keys: [name]
items:
  type: object
  required: [name]
  properties:
    name:
      type: string
      minLength: 1
      maxLength: 256
    value:
      type: string
      default: ""
      maxLength: 8192
{{- end -}}

{{- define "fish-tts.quantity" -}}
type: string
description: Requested of the node; there is no limit.
maxLength: 32
pattern: ^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$
{{- end -}}

{{- define "fish-tts.conditions" -}}
type: array
x-kubernetes-list-type: map
x-kubernetes-list-map-keys: [type]
items:
  type: object
  required: [type, status, reason]
  properties:
    type:
      type: string
    status:
      type: string
      enum: ["True", "False", Unknown]
    reason:
      type: string
    message:
      type: string
    lastTransitionTime:
      type: string
      format: date-time
{{- end -}}
