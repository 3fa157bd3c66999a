"""Readable aliases of generated names."""

from karpy.codec.fields import JsonObject
from karpy.model.labels import NODE_POOL


class Aliases:
    """Numbers claims by NodePool and pods by workload; a node has the alias of its claim."""

    def __init__(self) -> None:
        self._claims: dict[str, str] = {}
        self._providers: dict[str, str] = {}
        self._nodes: dict[str, str] = {}
        self._pods: dict[str, str] = {}
        self._workloads: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def add_claim(self, claim: JsonObject) -> None:
        """Register a NodeClaim, and its machine once it has one."""
        meta = claim["metadata"]
        if meta["name"] not in self._claims:
            pool = (meta.get("labels") or {}).get(NODE_POOL, "claim")
            self._claims[meta["name"]] = self._next(pool)
        machine = (claim.get("status") or {}).get("providerID")
        if machine:
            self._providers[machine] = self._claims[meta["name"]]

    def add_node(self, node: JsonObject) -> None:
        """Register a Node and its machine."""
        self._nodes[node["metadata"]["name"]] = (node.get("spec") or {}).get("providerID") or ""

    def add_pod(self, pod: JsonObject) -> str:
        """Register a pod; return the name of its workload."""
        meta = pod["metadata"]
        if meta["uid"] not in self._workloads:
            workload = _workload(meta)
            self._workloads[meta["uid"]] = workload
            if workload != meta["name"]:
                self._pods[meta["name"]] = self._next(workload, "#")
        return self._workloads[meta["uid"]]

    def workload_of(self, uid: str) -> str:
        """Return the workload of a pod, empty if there is no such pod."""
        return self._workloads.get(uid, "")

    def applied(self, text: str) -> str:
        """Return a text with generated names replaced by aliases."""
        known = {**self._pods, **self._providers, **self._claims}
        for name, machine in self._nodes.items():
            known[name] = self._providers.get(machine, name)
        for name in sorted(known, key=len, reverse=True):
            text = text.replace(name, known[name])
        return text

    def _next(self, what: str, mark: str = "-") -> str:
        name = what + mark
        self._counts[name] = self._counts.get(name, 0) + 1
        return f"{name}{self._counts[name]}"


def _workload(meta: JsonObject) -> str:
    owners = meta.get("ownerReferences") or ()
    if not owners:
        return str(meta["name"])
    owner = owners[0]
    # The name of a ReplicaSet is that of its Deployment and a hash.
    return str(owner["name"].rpartition("-")[0] if owner["kind"] == "ReplicaSet" else owner["name"])
