{{- define "atunner.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "atunner.labels" -}}
app.kubernetes.io/name: atunner
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "atunner.selector" -}}
app.kubernetes.io/name: atunner
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "atunner.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "atunner.scheme" -}}
{{ if .Values.server.tlsSecret }}https{{ else }}http{{ end }}
{{- end -}}

{{/* Not empty if workers are pods that KEDA starts for each job. */}}
{{- define "atunner.scaledJob" -}}
{{ if and .Values.keda.enabled (include "atunner.hasQueue" .) }}yes{{ end }}
{{- end -}}

{{- define "atunner.hasQueue" -}}
{{ if or .Values.queue.url .Values.queue.secret }}yes{{ end }}
{{- end -}}

{{- define "atunner.url" -}}
{{ include "atunner.scheme" . }}://{{ include "atunner.name" . }}.{{ .Release.Namespace }}.svc:8080
{{- end -}}

{{/* The variable that serve and worker read as --queue. */}}
{{- define "atunner.queueVariable" -}}
{{- if .Values.queue.secret }}
- name: ATUNNER_QUEUE
  valueFrom: {secretKeyRef: {name: {{ .Values.queue.secret }}, key: url}}
{{- else if .Values.queue.url }}
- {name: ATUNNER_QUEUE, value: {{ .Values.queue.url | quote }}}
{{- end }}
{{- end -}}

{{- define "atunner.queueEgress" -}}
- ports: [{port: {{ .Values.queue.port }}, protocol: TCP}]
  to:
    - namespaceSelector: {}
{{- end -}}

{{- define "atunner.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "atunner.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
