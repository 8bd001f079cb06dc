{{/* apiArgs: flags of the API, for the layouts that have it */}}
{{- define "federation.apiArgs" -}}
{{- $name := include "federation.fullname" . -}}
- --data-dir={{ include "federation.dataDir" . }}
- --bind-address={{ "0.0.0.0" }}
- --secure-port=6443
- {{ printf "--audit-log-path=%s" .Values.api.auditLogPath | quote }}
- --tls-san={{ concat (list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace)) .Values.api.tlsNames | join "," }}
{{- if .Values.etcd.servers }}
- {{ printf "--etcd-servers=%s" (join "," .Values.etcd.servers) | quote }}
- --etcd-cafile=/etc/federation/etcd/ca.crt
- --etcd-certfile=/etc/federation/etcd/tls.crt
- --etcd-keyfile=/etc/federation/etcd/tls.key
{{- end }}
{{- with .Values.apiserver.files }}
{{ include "federation.fileArgs" . | trim }}{{ end }}
{{- range .Values.apiserver.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "federation.controllersArgs" -}}
- {{ printf "--name=%s" .Values.federation.name | quote }}
- {{ printf "--dns-zone=%s" .Values.federation.dnsZone | quote }}
- --dns-bind-address=:5353
{{- with .Values.dns.nameServerIPs }}
- {{ printf "--dns-name-server-ips=%s" (join "," .) | quote }}
{{- end }}
{{- with .Values.controllers.files }}
{{ include "federation.fileArgs" . | trim }}{{ end }}
{{- range .Values.controllers.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "federation.dnsPorts" -}}
- name: dns-udp
  containerPort: 5353
  protocol: UDP
- name: dns-tcp
  containerPort: 5353
  protocol: TCP
{{- end }}

{{/* ready: the API serves on while controllers that have failed wait for their restart */}}
{{- define "federation.ready" -}}
{{ eq .Values.layout "Serve" | ternary "/readyz?exclude=federation-controllers" "/readyz" | quote }}
{{- end }}

{{/* apiContainer: what the API's container has in both layouts */}}
{{- define "federation.apiContainer" -}}
image: {{ include "federation.image" (dict "root" . "image" .Values.image) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext: {{- include "federation.securityContext" . | nindent 2 }}
startupProbe: # the first start makes keys; one after a crash reads etcd's log
  httpGet: {path: {{ include "federation.ready" . }}, port: https, scheme: HTTPS}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 150
livenessProbe:
  httpGet: {path: /livez, port: https, scheme: HTTPS}
  periodSeconds: 10
  timeoutSeconds: 15
  failureThreshold: 8
readinessProbe:
  httpGet: {path: {{ include "federation.ready" . }}, port: https, scheme: HTTPS}
  periodSeconds: 2
  timeoutSeconds: 5
{{- if gt (int .Values.replicas) 1 }}
lifecycle: # until nobody sends new requests here
  preStop:
    sleep:
      seconds: 5
{{- end }}
{{- end }}

{{- define "federation.apiMounts" -}}
- name: data
  mountPath: /var/lib/federation
{{- if .Values.etcd.servers }}
- name: etcd-tls
  mountPath: /etc/federation/etcd
  readOnly: true
{{- end }}
{{- with .Values.apiserver.files }}
{{ include "federation.fileMounts" . | trim }}{{ end }}
{{- end }}

{{- define "federation.pod" -}}
metadata:
  labels: {{- include "federation.selector" (dict "root" . "component" "control-plane") | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    kubectl.kubernetes.io/default-container: {{ eq .Values.layout "Serve" | ternary "federation" "apiserver" }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "federation.serviceAccountName" . | quote }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 60
  securityContext: {{- include "federation.podSecurityContext" . | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- include "federation.placement" (dict "root" . "component" "control-plane") | nindent 2 }}
  {{- if or .Values.pki.secretName (eq .Values.layout "Split") }}
  initContainers:
  {{- end }}
  {{- if .Values.pki.secretName }}
  - name: pki
    image: {{ include "federation.image" (dict "root" . "image" .Values.image) }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command: [/federation]
    args: [pki, import, --from=/etc/federation/pki, --data-dir={{ include "federation.dataDir" . }}]
    securityContext: {{- include "federation.securityContext" . | nindent 6 }}
    resources:
      requests: {cpu: 10m, memory: 64Mi}
      limits: {memory: 256Mi}
    volumeMounts:
    - name: data
      mountPath: /var/lib/federation
    - name: pki
      mountPath: /etc/federation/pki
      readOnly: true
  {{- end }}
  {{- if eq .Values.layout "Split" }}
  - name: apiserver
    restartPolicy: Always # it runs on beside the controllers, which start once it is there
    {{- include "federation.apiContainer" . | nindent 4 }}
    command: [/federation]
    args:
    - apiserver
    {{- include "federation.apiArgs" . | nindent 4 }}
    ports:
    - name: https
      containerPort: 6443
    resources: {{- toYaml .Values.apiserver.resources | nindent 6 }}
    volumeMounts: {{- include "federation.apiMounts" . | nindent 4 }}
  {{- end }}
  containers:
  {{- if eq .Values.layout "Split" }}
  - name: controllers
    image: {{ include "federation.image" (dict "root" . "image" .Values.image) }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    securityContext: {{- include "federation.securityContext" . | nindent 6 }}
    command: [/federation]
    args:
    - controllers
    - --kubeconfig={{ include "federation.dataDir" . }}/controllers.kubeconfig
    - --metrics-bind-address=:9153
    {{- include "federation.controllersArgs" . | nindent 4 }}
    ports:
    {{- include "federation.dnsPorts" . | nindent 4 }}
    - name: metrics
      containerPort: 9153
    livenessProbe:
      httpGet: {path: /healthz, port: metrics}
      periodSeconds: 10
      timeoutSeconds: 15
      failureThreshold: 8
    resources: {{- toYaml .Values.controllers.resources | nindent 6 }}
    volumeMounts:
    - name: data
      mountPath: /var/lib/federation
      readOnly: true
    {{- with .Values.controllers.files }}{{ include "federation.fileMounts" . | trim | nindent 4 }}{{ end }}
  {{- else }}
  - name: federation
    {{- include "federation.apiContainer" . | nindent 4 }}
    command: [/federation]
    args:
    - serve
    {{- include "federation.apiArgs" . | nindent 4 }}
    {{- include "federation.controllersArgs" . | nindent 4 }}
    ports:
    - name: https
      containerPort: 6443
    {{- include "federation.dnsPorts" . | nindent 4 }}
    resources: {{- toYaml .Values.serve.resources | nindent 6 }}
    volumeMounts:
    {{- include "federation.apiMounts" . | nindent 4 }}
    {{- with .Values.controllers.files }}{{ include "federation.fileMounts" . | trim | nindent 4 }}{{ end }}
  {{- end }}
  volumes:
  {{- if .Values.etcd.servers }}
  - name: data # keys and certificates: each start makes them from those of the Secret
    emptyDir: {}
  - name: etcd-tls
    secret:
      secretName: {{ .Values.etcd.tlsSecretName | quote }}
      defaultMode: 0440
  {{- else }}
  - name: data
    persistentVolumeClaim:
      claimName: {{ .Values.persistence.existingClaim | default (include "federation.fullname" .) | quote }}
  {{- end }}
  {{- if .Values.pki.secretName }}
  - name: pki
    secret:
      secretName: {{ .Values.pki.secretName | quote }}
      defaultMode: 0440
  {{- end }}
  {{- with .Values.apiserver.files }}{{ include "federation.fileVolumes" . | trim | nindent 2 }}{{ end }}
  {{- with .Values.controllers.files }}{{ include "federation.fileVolumes" . | trim | nindent 2 }}{{ end }}
{{- end }}
