"""Manifests for tests of whole commands: one NodePool, three pods, one of them too large."""

from typing import Final

POOL: Final = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: general
spec:
  template:
    spec:
      nodeClassRef:
        group: karpenter.kwok.sh
        kind: KWOKNodeClass
        name: default
      requirements:
        - key: kubernetes.io/os
          operator: In
          values: [linux]
        - key: kubernetes.io/arch
          operator: In
          values: [amd64]
"""

NODE: Final = """\
apiVersion: v1
kind: Node
metadata:
  name: node-1
  labels:
    kubernetes.io/hostname: node-1
    kubernetes.io/arch: amd64
    kubernetes.io/os: linux
    topology.kubernetes.io/zone: test-zone-a
status:
  capacity: {cpu: "2", memory: 4Gi, pods: "110"}
  allocatable: {cpu: "2", memory: 4Gi, pods: "110"}
"""


def pod(
    name: str,
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    namespace: str = "shop",
    selector: str = "{}",
) -> str:
    """Write a pending pod."""
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: {namespace}
spec:
  nodeSelector: {selector}
  containers:
    - name: main
      image: registry.example/main:1
      resources:
        requests: {{cpu: "{cpu}", memory: {memory}}}
"""


def stream(*documents: str) -> str:
    """Join documents to one stream."""
    return "---\n".join(documents)


FITS: Final = stream(POOL, pod("web-0"), pod("web-1"))
STUCK: Final = stream(POOL, pod("web-0"), pod("trainer", cpu="400", namespace="ml"))
