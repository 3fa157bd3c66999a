import pytest
import yaml

from karpy.adapters.controlplane.bundles import source
from karpy.sim.kubelets.behaviour import EXIT_CODE, READY, RUN, START, STOP


@pytest.mark.parametrize("annotation", [START, READY, RUN, EXIT_CODE, STOP])
def test_annotations_control_pods_as_in_the_embedded_cluster(annotation: str) -> None:
    """A test that runs in both worlds writes one manifest."""
    documents = yaml.safe_load_all(source("stages.yaml"))
    stages = [each["spec"] for each in documents if each["kind"] == "Stage"]

    assert f'"{annotation}"' in "".join(map(repr, stages))
