"""Which images the fake AWS has."""

import pytest

from karpy.adapters.clouds.awsfake.imagetable import image_of_parameter

EKS = "/aws/service/eks/optimized-ami/1.34"
AL2023 = f"{EKS}/amazon-linux-2023/x86_64/standard"
NAME = "amazon-eks-node-al2023-x86_64-standard-1.34"
ROCKET = "/aws/service/bottlerocket/aws-k8s-1.34/arm64"


@pytest.mark.parametrize(
    ("parameter", "name"),
    [
        (f"{AL2023}/recommended/image_id", f"{NAME}-v20260101"),
        (f"{AL2023}/{NAME}-v20251231/image_id", f"{NAME}-v20251231"),
        (f"{EKS}/amazon-linux-2-gpu/recommended/image_id", "amazon-eks-gpu-node-1.34-v20260101"),
        (f"{ROCKET}/latest/image_id", "bottlerocket-aws-k8s-1.34-arm64-v1.52.0-20260101"),
        (f"{ROCKET}/1.46.0/image_id", "bottlerocket-aws-k8s-1.34-arm64-v1.46.0"),
    ],
)
def test_a_parameter_of_a_release_names_its_image(parameter: str, name: str) -> None:
    found = image_of_parameter(parameter)

    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "parameter",
    [
        f"{AL2023}/{NAME}-v20260102/image_id",
        f"{AL2023}/{NAME}-v20251301/image_id",
        f"{AL2023}/{NAME}-latest/image_id",
        f"{AL2023}/amazon-eks-node-1.34-v20251231/image_id",
        f"{ROCKET}/1.52.1/image_id",
        f"{ROCKET}/v1.46.0/image_id",
        f"{ROCKET}/1.46/image_id",
    ],
)
def test_what_was_not_released_has_no_image(parameter: str) -> None:
    assert image_of_parameter(parameter) is None
