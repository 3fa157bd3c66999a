"""Files beside manifests that hold no object: kustomizations, their patches, charts."""

from typing import Final

from karpy.codec.fields import JsonObject

_FILES: Final = frozenset({"Kustomization", "kustomization.yaml", "kustomization.yml"})
_KINDS: Final = ("Component", "Kustomization")
_GROUP: Final = "kustomize.config.k8s.io/"
_CHANGING: Final = (
    "commonLabels",
    "components",
    "generators",
    "helmCharts",
    "helmChartInflationGenerator",
    "labels",
    "namespace",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "replacements",
    "replicas",
    "transformers",
    "vars",
)
"""Fields of a kustomization that change or add to the objects in its files."""
_REMOTE: Final = ("://", "?ref=", "github.com/", "git@")
BUILD_HINT: Final = "give what `kustomize build` prints instead of the files"
PATCH_HINT: Final = "build the whole object first, as `kustomize build` does"
_CHART_HINT: Final = "render the chart first, for example with `helm template`"
_KIND_HINT: Final = "add `apiVersion` and `kind`, as in any Kubernetes manifest"


def is_kustomization(file: str, value: JsonObject) -> bool:
    """Say whether a document is a kustomization, which names files and is no object itself."""
    kind = value.get("kind")
    if not kind:
        return _name(file) in _FILES
    return kind in _KINDS and str(value.get("apiVersion")).startswith(_GROUP)


def why_unbuilt(value: JsonObject) -> str:
    """Say what reading the files of a kustomization one by one would miss; empty if nothing."""
    changing = [f"`{key}`" for key in _CHANGING if value.get(key)]
    named = [value.get(key) for key in ("resources", "bases")]
    remote = [
        f"`{each}`"
        for names in named
        for each in (names if isinstance(names, list) else ())
        if isinstance(each, str) and any(sign in each for sign in _REMOTE)
    ]
    parts = []
    if changing:
        parts.append(f"{', '.join(changing)} would change what its files say")
    if remote:
        parts.append(f"{', '.join(remote)} would come from elsewhere")
    return " and ".join(parts)


def is_patch(value: object) -> bool:
    """Say whether a value is a list of JSON patches, as kustomize has them in files."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and {"op", "path"} <= each.keys() for each in value)
    )


def kind_hint(file: str) -> str:
    """Say what to do about a document without a kind."""
    name = _name(file)
    if name == "Chart.yaml" or name.startswith("values"):
        return _CHART_HINT
    return _KIND_HINT


def _name(file: str) -> str:
    return file.rpartition("/")[2]
