{{- define "member.labels" -}}
app.kubernetes.io/name: federation-nodeagent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: federation
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "member.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "member.healthPort" -}}
{{ eq .Values.scope "all" | ternary 10256 10356 }}
{{- end }}
