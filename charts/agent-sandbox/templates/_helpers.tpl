{{- /* Names are fixed: programs and documents use them, and one release per namespace is the rule. */ -}}

{{- define "as.labels" -}}
app.kubernetes.io/name: agent-sandbox
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "as.selector" -}}
app.kubernetes.io/name: agent-sandbox
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* as.image (dict "root" $ "name" "apiserver") */ -}}
{{- define "as.image" -}}
{{- $given := index .root.Values.images .name -}}
{{- if $given }}{{ $given }}{{ else }}{{ printf "%s/agent-sandbox-%s:%s" .root.Values.images.registry .name (toString .root.Values.images.tag) }}{{ end -}}
{{- end }}

{{- /* The domain without its port. */ -}}
{{- define "as.host" -}}
{{- regexReplaceAll ":[0-9]+$" .Values.domain "" -}}
{{- end }}

{{- define "as.keysSecret" -}}
{{- .Values.secrets.existingKeys | default "agent-sandbox-keys" -}}
{{- end }}

{{- define "as.installSecret" -}}
{{- .Values.secrets.existingInstall | default "agent-sandbox-install" -}}
{{- end }}

{{- define "as.tlsSecret" -}}
{{- .Values.tls.existingSecret | default "agent-sandbox-tls" -}}
{{- end }}

{{- /* Names and addresses of the certificate made here, as JSON {"dns":[…],"ips":[…]}. */ -}}
{{- define "as.certNames" -}}
{{- $host := include "as.host" . -}}
{{- $svc := printf "agent-sandbox.%s" .Release.Namespace -}}
{{- $dns := list $host (printf "*.%s" $host) (printf "api.%s" $host) (printf "*.sandbox.%s" $host) "localhost" "agent-sandbox" $svc (printf "%s.svc" $svc) (printf "%s.svc.cluster.local" $svc) -}}
{{- $ips := list "127.0.0.1" "::1" -}}
{{- dict "dns" (concat $dns .Values.tls.extraNames | uniq) "ips" (concat $ips .Values.tls.extraIPs | uniq) | toJson -}}
{{- end }}

{{- /*
Day (unix days) on which the certificate in use was or will be made: that of the Secret in the cluster while its names
are the wanted ones and its life is not in the last third; else today. Deterministic within a rendering, so that the
Secret and the pods' checksum agree.
*/ -}}
{{- define "as.certDay" -}}
{{- $today := div (now | unixEpoch | int64) 86400 -}}
{{- $day := $today -}}
{{- with lookup "v1" "Secret" .Release.Namespace "agent-sandbox-tls" -}}
{{- $a := .metadata.annotations | default dict -}}
{{- $made := index $a "agent-sandbox.io/made-on-day" | default "0" | int64 -}}
{{- $old := gt (mul (sub $today $made) 3) (mul ($.Values.tls.days | int64) 2) -}}
{{- if and (eq (index $a "agent-sandbox.io/names" | default "") (include "as.certNames" $)) (not $old) -}}
{{- $day = $made -}}
{{- end -}}
{{- end -}}
{{- $day -}}
{{- end }}

{{- /* as.configShipped (dict "root" $ "given" … "file" …): the text of the values, else of the chart's file. */ -}}
{{- define "as.configShipped" -}}
{{- if .given -}}{{ trim .given }}
{{- else -}}{{ .root.Files.Get .file | replace "@BASE_IMAGE@" (include "as.image" (dict "root" .root "name" "base")) | trim }}
{{- end -}}
{{- end }}

{{- /*
as.config (as above, with "key"): the shipped text, unless somebody changed the one in the cluster, which is kept. Changed
means that it is not what the last install or upgrade wrote, whose SHA-256 is an annotation.
*/ -}}
{{- define "as.config" -}}
{{- $text := include "as.configShipped" . -}}
{{- $live := lookup "v1" "ConfigMap" .root.Release.Namespace "agent-sandbox" | default dict -}}
{{- $now := index ($live.data | default dict) .key | default "" | trim -}}
{{- $written := index (($live.metadata | default dict).annotations | default dict) (printf "agent-sandbox.io/%s" .key) | default "" -}}
{{- if and .root.Values.config.keep $now (not .given) (ne (sha256sum $now) $written) -}}{{ $now }}
{{- else -}}{{ $text }}
{{- end -}}
{{- end }}

{{- define "as.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "as.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Environment that both programs read. */ -}}
{{- define "as.env" -}}
- name: SANDBOX_NAMESPACE
  value: {{ .Release.Namespace }}
- name: CONFIGMAP_NAME
  value: agent-sandbox
- name: KEYS_SECRET
  value: {{ include "as.keysSecret" . }}
- name: INSTALL_SECRET
  value: {{ include "as.installSecret" . }}
- name: LEADER_NAME
  value: agent-sandbox-leader
- name: LOG_LEVEL
  value: {{ .Values.logLevel }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
{{- end }}

{{- /* Where the pods of one program go. */ -}}
{{- define "as.placement" -}}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "as.selector" . | nindent 6 }}
{{- $v := index .root.Values .component }}
{{- with $v.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.images.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- end }}
