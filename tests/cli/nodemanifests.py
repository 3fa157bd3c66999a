"""A cluster with nodes in use, as `kubectl get -o yaml` prints it; each node tests one case."""

from typing import Final

from tests.cli.manifests import stream

NOW: Final = ("--now", "2026-03-02T12:00:00Z")
"""A Monday, within the budget window of the NodePool `batch`."""


def pool(name: str, budgets: str = '[{nodes: "50%"}]', disruption: str = "") -> str:
    """Write a NodePool of on-demand nodes."""
    return f"""\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: {name}}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}
      requirements:
        - {{key: kubernetes.io/os, operator: In, values: [linux]}}
        - {{key: kubernetes.io/arch, operator: In, values: [amd64]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
  disruption: {{consolidateAfter: 0s, budgets: {budgets}{disruption}}}
"""


def node(
    name: str, size: int = 2, *, owner: str = "general", zone: str = "a", annotations: str = "{}"
) -> str:
    """Write a Node with `size` CPUs that is ready and initialized."""
    room = f'{{cpu: "{size}", memory: {2 * size}Gi, pods: "110"}}'
    return f"""\
apiVersion: v1
kind: Node
metadata:
  name: {name}
  creationTimestamp: 2026-03-01T12:00:00Z
  annotations: {annotations}
  labels: {{{_labels(name, size, owner, zone)}, karpenter.sh/registered: "true",
    karpenter.sh/initialized: "true"}}
spec: {{providerID: "kwok://{name}"}}
status:
  capacity: {room}
  allocatable: {room}
  conditions: [{{type: Ready, status: "True", lastTransitionTime: 2026-03-01T12:00:00Z}}]
"""


def claim(
    name: str,
    size: int = 2,
    *,
    owner: str = "general",
    zone: str = "a",
    said: str = "Consolidatable",
) -> str:
    """Write the NodeClaim of a node."""
    conditions = ", ".join(
        f'{{type: {each}, status: "True", reason: {each}, message: "",'
        " lastTransitionTime: 2026-03-01T12:05:00Z}"
        for each in ("Launched", "Registered", "Initialized", *said.split())
    )
    return f"""\
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: {name}-claim
  creationTimestamp: 2026-03-01T12:00:00Z
  labels: {{{_labels(name, size, owner, zone)}}}
spec:
  nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}
  requirements: [{{key: kubernetes.io/os, operator: In, values: [linux]}}]
  expireAfter: 720h
status:
  providerID: kwok://{name}
  nodeName: {name}
  conditions: [{conditions}]
"""


def pod(
    name: str,
    on: str,
    *,
    cpu: str = "300m",
    labels: str = "{}",
    annotations: str = "{}",
    selector: str = "{}",
) -> str:
    """Write a pod that runs on a node."""
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {labels}, annotations: {annotations},
  creationTimestamp: 2026-03-01T12:10:00Z}}
spec:
  nodeName: {on}
  nodeSelector: {selector}
  containers:
    - {{name: main, image: main, resources: {{requests: {{cpu: "{cpu}", memory: 256Mi}}}}}}
status: {{phase: Running, startTime: 2026-03-02T11:00:00Z}}
"""


def pod_budget(allowed: str = "disruptionsAllowed: 0") -> str:
    """Write the PodDisruptionBudget of the database."""
    return f"""\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: orders-db, namespace: shop}}
spec: {{minAvailable: 1, selector: {{matchLabels: {{app: orders-db}}}}}}
status: {{{allowed}}}
"""


def _labels(name: str, size: int, owner: str, zone: str) -> str:
    return (
        f"karpenter.sh/nodepool: {owner}, karpenter.sh/capacity-type: on-demand,"
        f" node.kubernetes.io/instance-type: c-{size}x-amd64-linux,"
        f" topology.kubernetes.io/zone: test-zone-{zone}, kubernetes.io/hostname: {name},"
        " kubernetes.io/os: linux, kubernetes.io/arch: amd64"
    )


WINDOW: Final = (
    '[{nodes: "10%"},'
    ' {nodes: "0", schedule: "0 6 * * mon-fri", duration: 10h, reasons: [Underutilized]}]'
)
POOLS: Final = stream(pool("general"), pool("batch", WINDOW))
CLUSTER: Final = stream(
    POOLS,
    pod_budget(),
    # Kept by a PodDisruptionBudget, and much too large.
    node("general-1", 8),
    claim("general-1", 8),
    pod("orders-db-0", "general-1", cpu="1", labels="{app: orders-db}"),
    pod("web-0", "general-1"),
    # Kept by a pod that may only run in its zone.
    node("general-2", 1, zone="b"),
    claim("general-2", 1, zone="b"),
    pod("edge-0", "general-2", selector="{topology.kubernetes.io/zone: test-zone-b}"),
    pod("web-1", "general-2"),
    # Kept by an annotation with a duration.
    node("general-3"),
    claim("general-3"),
    pod("import-0", "general-3", annotations='{karpenter.sh/do-not-disrupt: "90m"}'),
    # Kept by nothing.
    node("general-4"),
    claim("general-4"),
    pod("web-2", "general-4"),
    # Kept by the window of a budget.
    node("batch-1", owner="batch"),
    claim("batch-1", owner="batch"),
    pod("report-0", "batch-1", cpu="500m"),
    # Kept because its NodePool is missing.
    node("old-1", owner="old"),
    claim("old-1", owner="old"),
)
