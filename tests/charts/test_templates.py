"""The objects that the charts render."""

from pathlib import Path
from typing import Any

import pytest

from tests.charts.helm import CHART, CRD_CHART, NAMED, Helm, HelmFailed, only
from tests.tidy.charts import moved, rules

TEAM = Path(__file__).with_name("karpenter-values.yaml")
KWOK = ("--set", "settings.provider=kwok")
VALUES: dict[str, tuple[str | Path, ...]] = {
    "default": NAMED,
    "kwok": KWOK,
    "team": ("--values", TEAM, "--api-versions", "monitoring.coreos.com/v1"),
    "bare": (
        *NAMED,
        "--set-json",
        "affinity={},topologySpreadConstraints=[],tolerations=[],nodeSelector={}",
        "--set",
        "priorityClassName=,replicas=1,serviceAccount.create=false,serviceAccount.name=other",
    ),
    "costs": (*KWOK, "--set-string", "settings.featureGates.podDeletionCostManagement=true"),
}


def _pod(objects: list[dict[str, Any]]) -> dict[str, Any]:
    pod: dict[str, Any] = only(objects, "Deployment")["spec"]["template"]["spec"]
    return pod


def _variables(objects: list[dict[str, Any]]) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in _pod(objects)["containers"][0]["env"]}


@pytest.mark.parametrize("words", VALUES.values(), ids=VALUES)
def test_lint_finds_nothing(helm: Helm, words: tuple[str | Path, ...]) -> None:
    # `helm lint` does not know what an API server offers.
    said = helm("lint", "--strict", CHART, *words[:2])

    assert "0 chart(s) failed" in said
    assert "WARNING" not in said


def test_lint_finds_nothing_in_the_definitions(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", CRD_CHART)


@pytest.mark.parametrize("words", VALUES.values(), ids=VALUES)
def test_the_same_values_render_the_same_objects(helm: Helm, words: tuple[str, ...]) -> None:
    """Otherwise GitOps tools would see a change at each sync; Argo CD renders without a cluster."""
    assert helm.template(*words) == helm.template(*words)


@pytest.mark.parametrize("words", VALUES.values(), ids=VALUES)
def test_there_are_no_hooks(helm: Helm, words: tuple[str, ...]) -> None:
    annotations = [each["metadata"].get("annotations", {}) for each in helm.template(*words)]

    assert not [each for each in annotations if any("hook" in name for name in each)]


@pytest.mark.parametrize("words", VALUES.values(), ids=VALUES)
def test_nothing_is_rendered_twice(helm: Helm, words: tuple[str, ...]) -> None:
    objects = helm.template(*words)
    names = [
        (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"])
        for each in objects
    ]

    assert len(set(names)) == len(names)


def test_every_value_of_karpenters_chart_is_taken(helm: Helm) -> None:
    objects = helm.template(*VALUES["team"])
    pod, variables = _pod(objects), _variables(objects)
    account = only(objects, "ServiceAccount")["metadata"]

    assert "eks.amazonaws.com/role-arn" in account["annotations"]
    assert account["annotations"]["owner"] == account["labels"]["team"] + "@example.com"
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "Default")
    assert [each["name"] for each in pod["containers"]] == ["controller", "side"]
    assert len(pod["containers"][1]["volumeMounts"]) == 2
    assert variables["VM_MEMORY_OVERHEAD_PERCENT"] == "0.05"
    assert variables["IGNORE_DRA_REQUESTS"] == "false"
    assert variables["RESERVED_ENIS"] == "1"
    assert "ReservedCapacity=false" in variables["FEATURE_GATES"]
    assert only(objects, "ServiceMonitor")["spec"]["sampleLimit"] == 10000


def test_a_service_monitor_needs_its_api(helm: Helm) -> None:
    objects = helm.template(*NAMED, "--set", "serviceMonitor.enabled=true")

    assert "ServiceMonitor" not in {each["kind"] for each in objects}


def test_pods_stay_off_nodes_that_karpy_may_remove_and_apart(helm: Helm) -> None:
    objects = helm.template(*NAMED)
    pod = _pod(objects)
    labels = only(objects, "Deployment")["spec"]["selector"]["matchLabels"]
    apart = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (terms,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]

    assert terms["matchExpressions"] == [
        {"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}
    ]
    assert [each["labelSelector"]["matchLabels"] for each in apart] == [labels]
    assert pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"] == labels
    assert only(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels


def test_selectors_given_are_kept(helm: Helm) -> None:
    constraint = '[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule",'
    constraint += '"labelSelector":{"matchLabels":{"a":"b"}}}]'
    objects = helm.template(*NAMED, "--set-json", f"topologySpreadConstraints={constraint}")

    assert _pod(objects)["topologySpreadConstraints"][0]["labelSelector"] == {
        "matchLabels": {"a": "b"}
    }


@pytest.mark.parametrize(("provider", "words"), [("aws", NAMED), ("kwok", KWOK)])
def test_the_account_gets_the_roles_of_its_provider(
    helm: Helm, provider: str, words: tuple[str, ...]
) -> None:
    objects = helm.template(*words)
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for each in objects
        if each["kind"].endswith("Binding")
    }
    granted = {
        each["metadata"]["name"]: each["rules"]
        for each in objects
        if (each["kind"], each["metadata"]["name"]) in bound
        and each["metadata"].get("namespace") != "karpenter"
    }

    dns = {"karpenter-dns": rules()["dns"]} if provider == "aws" else {}
    assert granted == {
        "karpenter": rules()[provider],
        "karpenter-core": rules()["core"],
        **dns,
    }
    assert only(objects, "Role")["rules"] == rules()["lease"]


def test_pods_may_be_patched_with_the_gate_alone(helm: Helm) -> None:
    objects = helm.template(*VALUES["costs"])

    assert (
        only(objects, "ClusterRole", "karpenter-pod-deletion-cost")["rules"]
        == (rules()["podDeletionCost"])
    )
    assert "PodDeletionCostManagement=true" in _variables(objects)["FEATURE_GATES"]


def test_further_objects_are_rendered(helm: Helm) -> None:
    further = '[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ .Release.Name }}-x"}},'
    further += '"apiVersion: v1\\nkind: ConfigMap\\nmetadata:\\n  name: text\\n"]'

    objects = helm.template(*NAMED, "--set-json", f"extraObjects={further}")

    assert only(objects, "ConfigMap", "karpenter-x")
    assert only(objects, "ConfigMap", "text")


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("settings.clustrName=x", "'/settings/clustrName': value must be 'left out: no such value"),
        ("webhok=x", "there are additionalAnnotations,"),
        ("settings.provider=gcp", "must be one of 'aws', 'kwok'"),
        ("settings.preferencePolicy=Always", "must be one of 'Respect', 'Ignore'"),
        ("replicas=two", "'/replicas': 'two' does not match"),
        ("settings.batchMaxDuration=soon", "'/settings/batchMaxDuration': 'soon' does not match"),
        ("settings.vmMemoryOverheadPercent=7%", "'/settings/vmMemoryOverheadPercent': '7%'"),
        ("serviceAccount=null", "missing property 'serviceAccount'"),
        ("controller.metrics=null", "'/controller': missing property 'metrics'"),
        ("webhook.enabled=true", "webhook.enabled is gone: there are no webhooks"),
        ("logLevel=loud", "must be one of '', 'debug', 'info', 'error'"),
        ("settings.featureGates.nodeRepair=maybe", "'/settings/featureGates/nodeRepair'"),
        (
            "controller.image.repository=1.dkr.ecr.eu-west-1.amazonaws.com/karpenter/controller",
            "which is Karpenter's image and not Karpy's",
        ),
    ],
)
def test_an_invalid_value_fails_with_a_hint(helm: Helm, value: str, hint: str) -> None:
    with pytest.raises(HelmFailed) as caught:
        helm.template(*NAMED, "--set", value)

    assert hint in str(caught.value)


@pytest.mark.parametrize("old", moved())
def test_a_value_of_an_earlier_chart_fails_with_what_has_become_of_it(helm: Helm, old: str) -> None:
    with pytest.raises(HelmFailed) as caught:
        helm.template("--set", f"{old}=x")

    assert f"{old} {moved()[old]}" in str(caught.value)


def test_webhooks_may_be_switched_off_as_most_values_files_do(helm: Helm) -> None:
    words = ("--set", "webhook.enabled=false,webhook.port=8443")

    assert helm.template(*NAMED, *words) == helm.template(*NAMED)


@pytest.mark.parametrize("heading", ["USER-SUPPLIED VALUES", "COMPUTED VALUES"])
def test_what_helm_get_values_prints_is_taken(helm: Helm, tmp_path: Path, heading: str) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(f"{heading}:\nsettings: {{clusterName: shop}}\n")

    assert helm.template("--values", values) == helm.template("--set", "settings.clusterName=shop")


def test_numbers_may_be_written_as_text(helm: Helm) -> None:
    values = "replicas=3,controller.metrics.port=9000,revisionHistoryLimit=5"

    assert helm.template(*NAMED, "--set-string", values) == helm.template(*NAMED, "--set", values)


def test_the_cluster_has_to_be_named(helm: Helm) -> None:
    with pytest.raises(HelmFailed, match=r"--set settings\.clusterName=NAME"):
        helm.template()


def test_a_chart_may_be_a_part_of_another(helm: Helm) -> None:
    words = ("--set", "global.registry=x,enabled=true")

    assert helm.template(*NAMED, *words) == helm.template(*NAMED)


def test_definitions_carry_annotations(helm: Helm) -> None:
    words = ("--set", r"additionalAnnotations.helm\.sh/resource-policy=keep")
    plain, kept = (helm.template(*each, chart=CRD_CHART) for each in ((), words))

    assert {each["metadata"].pop("annotations")["helm.sh/resource-policy"] for each in kept} == {
        "keep"
    }
    assert kept == plain
