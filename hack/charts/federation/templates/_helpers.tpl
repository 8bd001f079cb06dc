{{- define "federation.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* selector: dict root component */}}
{{- define "federation.selector" -}}
app.kubernetes.io/name: federation
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "federation.labels" -}}
{{ include "federation.selector" . }}
app.kubernetes.io/part-of: federation
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* image: dict root image */}}
{{- define "federation.image" -}}
{{ .image.repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "federation.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (include "federation.fullname" .) }}
{{- end }}

{{- define "federation.dataDir" -}}/var/lib/federation/data{{- end }}

{{/* fileArgs: the flags of files */}}
{{- define "federation.fileArgs" -}}
{{- range $flag, $file := . }}
- {{ printf "--%s=/etc/federation/%s/%s" $flag $flag $file.key | quote }}
{{- end }}
{{- end }}

{{- define "federation.fileMounts" -}}
{{- range $flag, $file := . }}
- name: file-{{ $flag }}
  mountPath: /etc/federation/{{ $flag }}
  readOnly: true
{{- end }}
{{- end }}

{{- define "federation.fileVolumes" -}}
{{- range $flag, $file := . }}
- name: file-{{ $flag }}
  {{- if $file.secretName }}
  secret:
    secretName: {{ $file.secretName | quote }}
    defaultMode: 0440
  {{- else }}
  configMap:
    name: {{ $file.configMapName | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "federation.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "federation.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* placement: dict root component */}}
{{- define "federation.placement" -}}
topologySpreadConstraints:
{{- if .root.Values.topologySpreadConstraints }}
{{ toYaml .root.Values.topologySpreadConstraints }}
{{- else }}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "federation.selector" $ | nindent 6 }}
{{- end }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}
