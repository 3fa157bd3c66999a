from datetime import timedelta

import pytest

from karpy.core.aws.images import (
    bottlerocket_version,
    choose_images,
    filters_of,
    image_for,
    queries_of,
    requirements_by_id,
    variants_of,
    why_unsupported,
)
from karpy.model.ec2 import Image
from karpy.model.ec2nodeclass import Ec2NodeClassSpec, Ec2NodeClassStatus, FoundImage, ImageTerm
from karpy.model.labels import ARCH
from karpy.model.requirements import one_of
from tests.builders.ec2 import C6G_LARGE, M5_LARGE
from tests.builders.ec2classes import AMD64, ARM64, NO_GPU, NOON, node_class, types_of


def parameters(family: str, version: str = "latest", kubernetes: str = "1.34") -> list[str]:
    return [each.parameter for each in variants_of((family, version), kubernetes)]


def test_al2_is_found_by_three_parameters() -> None:
    root = "/aws/service/eks/optimized-ami/1.32"
    assert parameters("al2", kubernetes="1.32") == [
        f"{root}/amazon-linux-2/recommended/image_id",
        f"{root}/amazon-linux-2-arm64/recommended/image_id",
        f"{root}/amazon-linux-2-gpu/recommended/image_id",
    ]
    assert parameters("al2", "v20240101", "1.32") == [
        f"{root}/amazon-linux-2/amazon-eks-node-1.32-v20240101/image_id",
        f"{root}/amazon-linux-2-arm64/amazon-eks-arm64-node-1.32-v20240101/image_id",
        f"{root}/amazon-linux-2-gpu/amazon-eks-gpu-node-1.32-v20240101/image_id",
    ]


def test_al2023_is_found_by_architecture_and_variant() -> None:
    root = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023"
    assert parameters("al2023") == [
        f"{root}/x86_64/standard/recommended/image_id",
        f"{root}/arm64/standard/recommended/image_id",
        f"{root}/x86_64/nvidia/recommended/image_id",
        f"{root}/arm64/nvidia/recommended/image_id",
        f"{root}/x86_64/neuron/recommended/image_id",
    ]
    pinned = parameters("al2023", "v20250101")[0]
    name = "amazon-eks-node-al2023-x86_64-standard-1.34-v20250101"
    assert pinned == f"{root}/x86_64/standard/{name}/image_id"


def test_bottlerocket_is_found_without_the_v_of_its_version() -> None:
    root = "/aws/service/bottlerocket/aws-k8s-1.34"
    assert parameters("bottlerocket", "v1.46.0") == [
        f"{root}/x86_64/1.46.0/image_id",
        f"{root}/arm64/1.46.0/image_id",
        f"{root}-nvidia/x86_64/1.46.0/image_id",
        f"{root}-nvidia/arm64/1.46.0/image_id",
    ]


def test_windows_is_always_the_latest() -> None:
    (only,) = variants_of(("windows2022", "latest"), "1.34")

    assert only.is_mutable
    assert only.parameter == (
        "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34"
        "/image_id"
    )


def test_only_latest_names_other_images_one_day() -> None:
    assert all(each.is_mutable for each in variants_of(("al2023", "latest"), "1.34"))
    assert not any(each.is_mutable for each in variants_of(("al2023", "v20250101"), "1.34"))


@pytest.mark.parametrize(
    ("family", "kubernetes", "is_supported"),
    [
        ("al2", "1.32", True),
        ("al2", "1.33", False),
        ("windows2025", "1.34", False),
        ("windows2025", "1.35+", True),
        ("al2023", "1.36", True),
    ],
)
def test_not_every_alias_goes_with_every_version(
    family: str, kubernetes: str, is_supported: object
) -> None:
    assert (not why_unsupported((family, "latest"), kubernetes)) is is_supported


def test_terms_become_as_few_queries_as_can_be() -> None:
    terms = (
        ImageTerm(id="ami-1"),
        ImageTerm(id="ami-2"),
        ImageTerm(ssm_parameter="/mine"),
        ImageTerm(ssm_parameter="/gone"),
        ImageTerm(name="mine-*"),
        ImageTerm(name="theirs-*", owner="111122223333", tags={"a": "b", "c": "*"}),
        ImageTerm(tags={"only": "tags"}),
    )

    queries = queries_of(Ec2NodeClassSpec(image_terms=terms), [], {"/mine": "ami-3"})

    assert [(each.filters, each.owners) for each in queries] == [
        ((("image-id", ("ami-1", "ami-2", "ami-3")),), ()),
        ((("name", ("mine-*",)),), ("self", "amazon")),
        ((("tag:a", ("b",)), ("tag-key", ("c",)), ("name", ("theirs-*",))), ("111122223333",)),
        ((("tag:only", ("tags",)),), ()),
    ]
    assert filters_of(queries[1])[-1] == {"Name": "state", "Values": ["available"]}


def test_an_alias_asks_for_the_images_of_its_parameters() -> None:
    spec = Ec2NodeClassSpec(image_terms=(ImageTerm(alias="al2023@latest"),))

    (query,) = queries_of(spec, ["ami-1", "ami-2", "ami-1"], {})

    assert query.filters == (("image-id", ("ami-1", "ami-2")),)
    assert queries_of(spec, [], {}) == ()


def image(id_: str, age: int, arch: str = "x86_64", deprecated: int | None = None) -> Image:
    """Return an image of so many days, deprecated so many days ago."""
    old = None if deprecated is None else NOON - timedelta(days=deprecated)
    return Image(id_, f"name-{id_}", arch, NOON - timedelta(days=age), old)


def test_the_newest_image_that_is_not_deprecated_is_taken() -> None:
    images = [
        image("ami-old", 9),
        image("ami-new", 2),
        image("ami-newest", 1, deprecated=1),
        image("ami-arm", 5, "arm64"),
        image("ami-mac", 1, "x86_64_mac"),
    ]

    found = choose_images([(each, ()) for each in images], NOON)

    assert [each.id for each in found] == ["ami-new", "ami-arm"]


def test_a_deprecated_image_is_better_than_none() -> None:
    (found,) = choose_images([(image("ami-1", 9, deprecated=1), ())], NOON)

    assert (found.id, found.is_deprecated) == ("ami-1", True)


def test_each_kind_of_machine_has_its_own_image() -> None:
    variants = variants_of(("al2023", "latest"), "1.34")
    values = {each.parameter: f"ami-{number}" for number, each in enumerate(variants)}
    by_id = requirements_by_id(values, variants)
    images = [
        image("ami-0", 1),
        image("ami-1", 1, "arm64"),
        image("ami-2", 1),
        image("ami-3", 1, "arm64"),
        image("ami-4", 1),
    ]

    found = choose_images(
        ((each, requirements) for each in images for requirements in by_id[each.id]), NOON
    )

    assert sorted(each.id for each in found) == ["ami-0", "ami-1", "ami-2", "ami-3", "ami-4"]


def test_an_instance_type_boots_the_first_image_that_suits_it() -> None:
    m5, c6g = types_of(M5_LARGE), types_of(C6G_LARGE)
    later = FoundImage("ami-later", "", (one_of(ARCH, "amd64"), NO_GPU))

    assert image_for([ARM64, AMD64, later], m5[0]) == AMD64
    assert image_for([AMD64, ARM64], c6g[0]) == ARM64
    assert image_for([ARM64], m5[0]) is None


@pytest.mark.parametrize(
    ("terms", "images", "version"),
    [
        ((ImageTerm(alias="bottlerocket@v1.46.0"),), (), "v1.46.0"),
        ((ImageTerm(name="bottlerocket-aws-k8s-1.34-x86_64-v1.45.0-abc"),), (), "v1.45.0"),
        ((ImageTerm(id="ami-1"),), (FoundImage("ami-1", "own-v1.44.1-x"),), "v1.44.1"),
        (
            (ImageTerm(tags={"a": "b"}),),
            (FoundImage("ami-2", "bottlerocket-aws-k8s-1.34-v1.43.0-x"),),
            "v1.43.0",
        ),
        ((ImageTerm(tags={"a": "b"}),), (FoundImage("ami-2", "own-v1.43.0"),), ""),
    ],
)
def test_the_version_of_bottlerocket_is_in_alias_or_names(
    terms: tuple[ImageTerm, ...], images: tuple[FoundImage, ...], version: str
) -> None:
    found = node_class(Ec2NodeClassSpec(image_terms=terms), Ec2NodeClassStatus(images=images))

    assert bottlerocket_version(found) == version
