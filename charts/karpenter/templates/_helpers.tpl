{{- /* The name of the chart, for labels. */ -}}
{{- define "karpenter.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- /* The name of all objects; that of the release, if it says what is in it. */ -}}
{{- define "karpenter.fullname" -}}
{{- $name := include "karpenter.name" . -}}
{{- $whole := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{ .Values.fullnameOverride | default $whole | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "karpenter.serviceAccountName" -}}
{{- $own := .Values.serviceAccount.create | ternary (include "karpenter.fullname" .) "default" -}}
{{ .Values.serviceAccount.name | default $own }}
{{- end -}}

{{- /* By these a Deployment of Karpenter's chart finds its pods, too: a release of it can be upgraded. */ -}}
{{- define "karpenter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "karpenter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "karpenter.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "karpenter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Metadata of an object: (dict "at" $ "name" NAME "namespace" NAMESPACE "labels" MAP "annotations" MAP). */ -}}
{{- define "karpenter.metadata" -}}
name: {{ .name | default (include "karpenter.fullname" .at) }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "karpenter.labels" .at | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .at.Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "karpenter.image" -}}
{{- with .Values.controller.image -}}
{{- if hasSuffix "karpenter/controller" .repository -}}
{{- fail (printf "controller.image.repository is `%s`, which is Karpenter's image and not Karpy's; leave controller.image out, or name where you keep Karpy's image" .repository) -}}
{{- end -}}
{{ .repository }}
{{- if .tag }}:{{ .tag }}{{ else if not .digest }}:{{ $.Chart.AppVersion }}{{ end }}
{{- with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* Constraints as JSON, those without a selector with the labels of the pods: (dict "at" $ "terms" LIST). */ -}}
{{- define "karpenter.selecting" -}}
{{- $selector := dict "matchLabels" (include "karpenter.selectorLabels" .at | fromYaml) -}}
{{- $whole := list -}}
{{- range .terms -}}
{{- $term := deepCopy . -}}
{{- if hasKey $term "podAffinityTerm" -}}
{{- $inner := $term.podAffinityTerm -}}
{{- if not (hasKey $inner "labelSelector") -}}{{- $_ := set $inner "labelSelector" $selector -}}{{- end -}}
{{- else if not (hasKey $term "labelSelector") -}}
{{- $_ := set $term "labelSelector" $selector -}}
{{- end -}}
{{- $whole = append $whole $term -}}
{{- end -}}
{{- toJson $whole -}}
{{- end -}}

{{- define "karpenter.affinity" -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- range $kind := list "podAffinity" "podAntiAffinity" -}}
{{- $of := index $affinity $kind | default dict -}}
{{- range $strength := list "requiredDuringSchedulingIgnoredDuringExecution" "preferredDuringSchedulingIgnoredDuringExecution" -}}
{{- with index $of $strength -}}
{{- $_ := set $of $strength (include "karpenter.selecting" (dict "at" $ "terms" .) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{- /* The variables of the settings, by their name in `settings`. */ -}}
{{- define "karpenter.variables" -}}
batchIdleDuration: BATCH_IDLE_DURATION
batchMaxDuration: BATCH_MAX_DURATION
decisionTimeout: KARPY_DECISION_TIMEOUT
disableClusterStateObservability: DISABLE_CLUSTER_STATE_OBSERVABILITY
ignoreDRARequests: IGNORE_DRA_REQUESTS
journal: KARPY_JOURNAL
legacyNodeRepair: LEGACY_NODE_REPAIR
minValuesPolicy: MIN_VALUES_POLICY
packing: KARPY_PACKING
preferencePolicy: PREFERENCE_POLICY
provider: KARPY_PROVIDER
schedulerConfig: SCHEDULER_CONFIG
nominatePods: KARPY_NOMINATE_PODS
{{- if eq .Values.settings.provider "aws" }}
amiRefreshInterval: AMI_REFRESH_INTERVAL
clusterCABundle: CLUSTER_CA_BUNDLE
clusterEndpoint: CLUSTER_ENDPOINT
clusterName: CLUSTER_NAME
disableDryRun: DISABLE_DRY_RUN
eksControlPlane: EKS_CONTROL_PLANE
enableZonalShift: ENABLE_ZONAL_SHIFT
interruptionQueue: INTERRUPTION_QUEUE
isolatedVPC: ISOLATED_VPC
reservedENIs: RESERVED_ENIS
subnetRefreshInterval: SUBNET_REFRESH_INTERVAL
vmMemoryOverheadPercent: VM_MEMORY_OVERHEAD_PERCENT
{{- end }}
{{- end -}}

{{- define "karpenter.gates" -}}
{{- $gates := list -}}
{{- range $name, $isOpen := .Values.settings.featureGates -}}
{{- $gates = append $gates (printf "%s=%s" (title $name) (toString $isOpen)) -}}
{{- end -}}
{{ join "," $gates }}
{{- end -}}

{{- /* Fails for values of earlier charts, all at once, with the name each has now. */ -}}
{{- define "karpenter.check" -}}
{{- $problems := list -}}
{{- range $old, $now := .Files.Get "files/moved.yaml" | fromYaml -}}
{{- $value := $.Values -}}
{{- range splitList "." $old -}}
{{- $value = and (kindIs "map" $value) (hasKey $value .) | ternary (get ((kindIs "map" $value) | ternary $value dict) .) nil -}}
{{- end -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $problems = append $problems (printf "%s %s" $old $now) -}}
{{- end -}}
{{- end -}}
{{- with .Values.webhook -}}
{{- if eq (toString .enabled) "true" -}}
{{- $problems = append $problems "webhook.enabled is gone: there are no webhooks; false or nothing says so" -}}
{{- end -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "values of an earlier chart:\n  %s" (join "\n  " $problems)) -}}
{{- end -}}
{{- with .Values.settings -}}
{{- if and (eq .provider "aws") (not .clusterName) -}}
{{- fail "settings.clusterName is empty; name the EKS cluster: --set settings.clusterName=NAME" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The rules of a role, from files/roles.yaml. */ -}}
{{- define "karpenter.rules" -}}
{{- index (.at.Files.Get "files/roles.yaml" | fromYaml) .role | toYaml -}}
{{- end -}}

{{- /* A binding of one of our roles to our account: (dict "at" $ "kind" KIND "role" NAME "namespace" NAMESPACE). */ -}}
{{- define "karpenter.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- include "karpenter.metadata" (dict "at" .at "name" .role "namespace" .namespace) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .role }}
subjects:
  - kind: ServiceAccount
    name: {{ include "karpenter.serviceAccountName" .at }}
    namespace: {{ .at.Release.Namespace }}
{{- end -}}
