{{- define "lb.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "lb.selector" -}}
app.kubernetes.io/name: federation-lb
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "lb.labels" -}}
{{ include "lb.selector" . }}
app.kubernetes.io/part-of: federation
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "lb.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (include "lb.fullname" .) }}
{{- end }}

{{- define "lb.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
