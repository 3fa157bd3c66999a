"""Plain objects read as manifests, for tests of the resulting snapshot and findings."""

import json
from datetime import UTC, datetime

from karpy.codec.catalogs import kwok_catalog
from karpy.codec.manifests import Reading, read_manifests
from karpy.model.settings import Settings
from tests.codec.plain import Json, Value

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def read_texts(*texts: str) -> Reading:
    """Read files named by their number."""
    documents = [(f"{number}.yaml", text) for number, text in enumerate(texts)]
    return read_manifests(documents, kwok_catalog(), Settings(), NOON)


def read(*objects: Value) -> Reading:
    """Read objects as one JSON stream, one document each."""
    return read_texts("\n".join(json.dumps(each) for each in objects))


def notes_of(reading: Reading) -> list[str]:
    """Return the findings besides problems, each with its severity and code."""
    return [f"{each.severity.value} {each.code}: {each}" for each in reading.notes]


def problem(*objects: Value) -> str:
    """Return the one problem that these objects make."""
    (found,) = read(*objects).problems
    return found.message


def obj(kind: str, name: str, **fields: Value) -> Json:
    """Build an object of a kind that has no builder of its own."""
    groups = {
        "StorageClass": "storage.k8s.io/v1",
        "CSINode": "storage.k8s.io/v1",
        "PodDisruptionBudget": "policy/v1",
        "NodeClaim": "karpenter.sh/v1",
        "NodeOverlay": "karpenter.sh/v1alpha1",
    }
    meta = {"name": name, **fields.pop("meta", {})}
    return {"apiVersion": groups.get(kind, "v1"), "kind": kind, "metadata": meta, **fields}


def names(*objects: Json) -> list[str]:
    """Return the names of all pods in the snapshot."""
    return [pod.name for pod in read(*objects).snapshot.pods]
