import pytest

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.oldfields import Notes
from karpy.codec.convert.workloads import renamed
from karpy.codec.fields import JsonObject
from tests.codec.convert.texts import converted, notes_in

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata:
      annotations: {karpenter.sh/do-not-evict: "true"}
    spec:
      nodeSelector: {karpenter.sh/provisioner-name: web}
      tolerations: [{key: karpenter.sh/provisioner-name, operator: Exists}]
      topologySpreadConstraints: [{topologyKey: karpenter.sh/provisioner-name}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - {key: karpenter.sh/provisioner-name, operator: In, values: [web]}
"""


def test_a_workload_names_pools_and_annotations_as_today() -> None:
    conversion = converted(DEPLOYMENT)

    expected = converted(
        DEPLOYMENT.replace("provisioner-name", "nodepool").replace("not-evict", "not-disrupt")
    )
    assert conversion.objects == expected.objects
    assert (conversion.total.converted, expected.total.converted) == (1, 0)
    terms = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    pod = "spec.template.spec"
    assert notes_in(conversion) == [
        ("RENAMED", "spec.template.metadata.annotations[karpenter.sh/do-not-evict]"),
        ("RENAMED", f"{pod}.nodeSelector[karpenter.sh/provisioner-name]"),
        ("RENAMED", f"{pod}.tolerations[0].key"),
        ("RENAMED", f"{pod}.topologySpreadConstraints[0].topologyKey"),
        ("RENAMED", f"{pod}.affinity.nodeAffinity.{terms}.matchExpressions[0].key"),
    ]


@pytest.mark.parametrize(
    ("annotations", "today"),
    [
        ({"karpenter.sh/do-not-consolidate": "true"}, {"karpenter.sh/do-not-disrupt": "true"}),
        (
            {"karpenter.sh/do-not-evict": "false", "karpenter.sh/do-not-disrupt": "true"},
            {"karpenter.sh/do-not-disrupt": "true"},
        ),
        (
            {"karpenter.sh/do-not-evict": "true", "karpenter.sh/do-not-consolidate": "true"},
            {"karpenter.sh/do-not-disrupt": "true"},
        ),
        ({"example.com/a": "b"}, {"example.com/a": "b"}),
    ],
)
def test_annotations_have_one_name_today(
    annotations: dict[str, str], today: dict[str, str]
) -> None:
    assert renamed(annotations, "", Notes("")) == today


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"data": {"args": "--selector=karpenter.sh/provisioner-name=a"}}, ["data.args"]),
        (
            {"conf": {"spark.selector.karpenter.sh/provisioner-name": "a"}},
            ["conf[spark.selector.karpenter.sh/provisioner-name]"],
        ),
        ({"description": "karpenter.sh/do-not-evict is old"}, []),
        ({"metadata": {"managedFields": [{"f:karpenter.sh/do-not-evict": {}}]}}, []),
    ],
)
def test_a_text_that_names_an_old_label_is_left_and_named(
    value: JsonObject, paths: list[str]
) -> None:
    notes = Notes("")

    assert renamed(value, "", notes) == value
    assert [(each.change, each.path) for each in notes.all] == [
        (FieldChange.LOST, path) for path in paths
    ]
