"""Conversions of old manifests from texts, with their notes and problems in short forms."""

from typing import Any

from karpy.codec.convert.conversion import Conversion
from karpy.codec.convert.drafts import NO_CLUSTER, NamedCluster
from karpy.codec.convert.manifests import convert, convert_groups
from karpy.codec.convert.yamltexts import to_yaml
from karpy.codec.documents import Document, read_documents
from karpy.errors import ManifestInvalid


def converted(*texts: str, role: str = "", cluster: NamedCluster = NO_CLUSTER) -> Conversion:
    """Convert files of these texts: `1.yaml`, `2.yaml` and so on."""
    return convert(_documents(*texts), role, cluster)


def proposed(*texts: str, role: str = "", cluster: NamedCluster = NO_CLUSTER) -> Conversion:
    """Convert groups of machines in files of these texts."""
    return convert_groups(_documents(*texts), role, cluster)


def _documents(*texts: str) -> list[Document | ManifestInvalid]:
    return [
        document
        for number, text in enumerate(texts, start=1)
        for document in read_documents(f"{number}.yaml", text)
    ]


def again(conversion: Conversion) -> Conversion:
    """Convert the converted objects once more."""
    objects = enumerate(conversion.objects, start=1)
    return convert(Document("out.yaml", number, each) for number, each in objects)


def shown(conversion: Conversion) -> str:
    """Write objects, notes and problems of a conversion as one text, for a snapshot."""
    notes = [
        f"{each.where} {each.change.name} {each.path}: {each.text}" for each in conversion.notes
    ]
    problems = [f"{each.message} | {each.hint}" for each in conversion.problems]
    return "\n".join([to_yaml(conversion.objects), *notes, *problems])


def notes_in(conversion: Conversion) -> list[tuple[str, str]]:
    """Return the notes of a conversion: the change and the path of each."""
    return [(each.change.name, each.path) for each in conversion.notes]


def refused(conversion: Conversion) -> list[tuple[str, str, str]]:
    """Return the problems of a conversion: path, problem and hint."""
    return [(each.path, each.problem, each.hint) for each in conversion.problems]


def spec_of(conversion: Conversion, kind: str) -> dict[str, Any]:
    """Return the spec of the first object of a kind."""
    found: dict[str, Any] = next(each for each in conversion.objects if each["kind"] == kind)
    spec: dict[str, Any] = found["spec"]
    return spec
