"""Old manifests with every field of their kind."""

from typing import Final

PROVISIONER: Final = """\
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata:
  name: batch
  namespace: karpenter
  uid: 6f1f2c1e
  resourceVersion: "12"
  generation: 3
  creationTimestamp: "2023-01-01T00:00:00Z"
  labels: {team: data}
  annotations:
    example.com/owner: data
    kubectl.kubernetes.io/last-applied-configuration: "{}"
spec:
  providerRef: {name: batch, apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate}
  labels: {tier: batch}
  annotations: {karpenter.sh/do-not-consolidate: "true"}
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, c5.large]}
  - {key: karpenter.sh/provisioner-name, operator: In, values: [batch]}
  - {key: karpenter.k8s.aws/instance-pods, operator: Gt, values: ["20"]}
  - {key: topology.kubernetes.io/zone, operator: NotIn, values: [us-east-1e]}
  taints:
  - {key: batch, operator: Equal, value: "yes", effect: NoSchedule}
  startupTaints:
  - {key: example.com/agent, effect: NoExecute}
  limits:
    resources: {cpu: 1000, memory: 500Gi}
  weight: 10
  ttlSecondsUntilExpired: 2592000
  consolidation: {enabled: true}
  kubeletConfiguration:
    clusterDNS: [10.0.1.100]
    containerRuntime: containerd
    systemReserved: {cpu: 100m, memory: 100Mi}
    kubeReserved: {cpu: 1, memory: 200Mi}
    evictionHard: {memory.available: 5%}
    evictionSoft: {memory.available: 500Mi}
    evictionSoftGracePeriod: {memory.available: 1m}
    evictionMaxPodGracePeriod: 60
    imageGCHighThresholdPercent: 85
    imageGCLowThresholdPercent: 80
    cpuCFSQuota: true
    podsPerCore: 2
    maxPods: 20
  userData: "#!/bin/sh"
status:
  resources: {cpu: "8"}
"""

NODE_TEMPLATE: Final = """\
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: batch, namespace: karpenter}
spec:
  amiFamily: Bottlerocket
  amiSelector: {aws::name: "bottlerocket-*", aws::owners: "123456789012,amazon", stage: prod}
  subnetSelector: {Name: "*private*", karpenter.sh/discovery/shop: "*"}
  securityGroupSelector: {aws-ids: "sg-0a1, sg-0b2"}
  instanceProfile: BatchNodes
  context: arn:aws:something
  detailedMonitoring: true
  tags: {team: data, kubernetes.io/cluster/shop: owned}
  metadataOptions: {httpEndpoint: enabled, httpPutResponseHopLimit: 3}
  blockDeviceMappings:
  - deviceName: /dev/xvda
    ebs:
      deleteOnTermination: true
      encrypted: true
      iops: 3000
      kmsKeyID: alias/disks
      snapshotID: snap-0a1
      throughput: 125
      volumeSize: 100Gi
      volumeType: gp3
  userData: |
    [settings.kubernetes]
    log-level = 2
status:
  subnets: [{id: subnet-1, zone: us-east-1a}]
"""

WITH_PROVIDER: Final = """\
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: default}
spec:
  ttlSecondsAfterEmpty: 30
  kubeletConfiguration: {maxPods: 30}
  provider:
    apiVersion: extensions.karpenter.sh/v1alpha1
    kind: AWS
    instanceProfile: Nodes
    subnetSelector: {karpenter.sh/discovery: shop}
    securityGroupSelector: {karpenter.sh/discovery: shop}
"""

POOL: Final = """\
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata:
  name: web
  annotations: {kubernetes.io/description: web, karpenter.sh/nodepool-hash: "1"}
spec:
  weight: 5
  limits: {cpu: 100, memory: 400Gi, nvidia.com/gpu: 0.5}
  disruption:
    consolidationPolicy: WhenUnderutilized
    expireAfter: 168h
    budgets:
    - {nodes: 20%}
    - {nodes: "0", schedule: "@daily", duration: 10m}
  template:
    metadata:
      labels: {tier: web, rank: 1}
      annotations: {karpenter.sh/do-not-disrupt: "true"}
    spec:
      nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: web}
      requirements:
      - {key: karpenter.k8s.aws/instance-family, operator: Exists, minValues: 5}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: [2]}
      taints:
      - {key: web, value: "yes", effect: NoSchedule}
      startupTaints:
      - {key: example.com/agent, effect: NoSchedule}
      resources: {requests: {cpu: 1}}
      kubelet: {maxPods: 110, systemReserved: {cpu: 100m}}
status:
  resources: {cpu: "8"}
"""

CLAIM: Final = """\
apiVersion: karpenter.sh/v1beta1
kind: NodeClaim
metadata:
  generateName: web-
  labels: {karpenter.sh/nodepool: web}
  finalizers: [karpenter.sh/termination]
  ownerReferences: [{kind: NodePool, name: web}]
spec:
  nodeClassRef: {name: web}
  requirements:
  - {key: kubernetes.io/arch, operator: In, values: [amd64]}
  resources: {requests: {cpu: "1"}}
  taints:
  - {key: web, effect: NoSchedule}
  kubelet: {maxPods: 110, systemReserved: {cpu: 100m}}
status:
  providerID: aws:///us-east-1a/i-0a1
"""

NODE_CLASS: Final = """\
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata:
  name: web
  annotations: {karpenter.k8s.aws/ec2nodeclass-hash: "1"}
spec:
  amiFamily: AL2
  role: Nodes
  subnetSelectorTerms:
  - tags: {karpenter.sh/discovery: shop}
  - id: subnet-0a1
  securityGroupSelectorTerms:
  - name: nodes
  tags: {team: web, karpenter.sh/nodepool: web}
  associatePublicIPAddress: false
  context: some
  detailedMonitoring: true
  instanceStorePolicy: RAID0
  metadataOptions: {httpTokens: optional}
  blockDeviceMappings:
  - {deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 50Gi, volumeType: gp3}}
  userData: |
    #!/bin/sh
    \techo "tab"
  launchTemplateName: old
status:
  amis: []
"""

SELECTING_CLASS: Final = """\
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: own, namespace: karpenter}
spec:
  amiFamily: Ubuntu
  amiSelectorTerms:
  - {name: "ubuntu-eks/*", owner: "099720109477"}
  - {tags: {stage: prod}}
  - {id: ami-0a1}
  instanceProfile: Nodes
  subnetSelectorTerms: [{tags: {Name: "*private*"}}]
  securityGroupSelectorTerms: [{id: sg-0a1}, {tags: {aws:eks:cluster-name: shop}}]
  associatePublicIPAddress: true
  instanceStorePolicy: NVME
  metadataOptions:
    httpEndpoint: enabled
    httpProtocolIPv6: disabled
    httpPutResponseHopLimit: 1
    httpTokens: required
  blockDeviceMappings:
  - deviceName: /dev/sda1
    ebs:
      deleteOnTermination: true
      encrypted: true
      iops: 3000
      kmsKeyID: alias/disks
      snapshotID: snap-0a1
      throughput: 125
      volumeSize: 100Gi
      volumeType: gp3
  userData: "#!/bin/sh\\n"
"""

COMMENTED: Final = """\
# Copyright of the shop
---
# Owned by team batch.
apiVersion: karpenter.sh/v1alpha5  # of 2022
kind: Provisioner
metadata: {name: batch}
spec:
  # Nodes without pods go.
  ttlSecondsAfterEmpty: 30  # half a minute
  ttlSecondsUntilExpired: 604800 # a week
  limits:
    # Ask before it is raised.
    resources: {cpu: 1000}
  labels:
    tier: batch  # for selectors
  requirements:
  # Cheap ones
  - key: karpenter.sh/provisioner-name  # ourselves
    operator: In
    values: [batch]
  - key: node.kubernetes.io/instance-type
    operator: In
    values:
    - m5.large  # Intel
    - m6g.large  # Graviton
    # - c5.large
  kubeletConfiguration:
    containerRuntime: dockerd  # until 2023
    maxPods: 20  # small ones
  provider:
    # Private ones only
    subnetSelector:
      Name: "*private*"  # of the VPC
    securityGroupSelector: {aws-ids: sg-1}  # the old one
    userData: |
      #!/bin/sh
      # stays
# The end.
---
# Nothing else.
"""
