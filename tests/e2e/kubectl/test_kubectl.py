"""The real kubectl against the embedded cluster."""

import json

import pytest

from karpy.wiring.embedded import ServedCluster
from tests.e2e.kubectl.commands import NODE_POOL, Kubectl, rows


async def test_versions_are_printed(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36" in await kubectl("version")


async def test_resources_are_listed(kubectl: Kubectl) -> None:
    listed = rows(await kubectl("api-resources", "--no-headers"))

    assert ["nodepools", "karpenter.sh/v1", "false", "NodePool"] in listed
    assert ["pods", "po", "v1", "true", "Pod"] in listed
    assert not [each for each in listed if "metrics.k8s.io" in each[1]]


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("pod.spec.nodeSelector", "Labels a node must have."),
        ("deployment.spec.replicas", "How many pods."),
        ("nodepool.spec.disruption.budgets", "Limits on simultaneous disruption."),
        ("crd", "Brings a kind of its own into the cluster."),
    ],
)
async def test_fields_are_explained(kubectl: Kubectl, path: str, part: str) -> None:
    assert part in await kubectl("explain", path)


async def test_fields_are_explained_to_the_bottom(kubectl: Kubectl) -> None:
    text = await kubectl("explain", "pods", "--recursive")

    assert "topologySpreadConstraints\t<[]TopologySpreadConstraint>" in text


async def test_pods_are_shown_in_tables(web: Kubectl) -> None:
    narrow = rows(await web("get", "pods"))
    wide = rows(await web("get", "pods", "-A", "-o", "wide"))

    assert narrow[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [each[1:3] for each in narrow[1:]] == [["1/1", "Running"]] * 2
    assert wide[0][:2] == ["NAMESPACE", "NAME"]
    assert {each[7] for each in wide[1:]} == {"node-1", "node-2"}


async def test_custom_resources_are_shown_with_their_columns(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=NODE_POOL)

    narrow = await kubectl("get", "nodepools")
    wide = await kubectl("get", "nodepools", "-o", "wide")

    assert narrow.split("\n")[0].split() == ["NAME", "NODECLASS", "NODES", "READY", "AGE"]
    assert rows(wide)[1][:2] == ["general", "default"]
    assert "WEIGHT" in wide


async def test_objects_are_shown_in_other_forms(web: Kubectl) -> None:
    as_json = json.loads(await web("get", "deploy", "web", "-o", "json"))
    as_yaml = await web("get", "deploy", "web", "-o", "yaml")
    replicas = await web("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}")
    names = await web("get", "pods", "-l", "app=web", "-o", "name")
    elsewhere = await web("get", "pods", "--field-selector", "spec.nodeName=nowhere")
    labelled = await web("get", "pods", "-L", "app", "--chunk-size=1")

    assert as_json["kind"] == "Deployment"
    assert "replicas: 2" in as_yaml
    assert replicas == "2"
    assert len(names.split()) == 2
    assert elsewhere == ""
    assert [each[-1] for each in rows(labelled)] == ["APP", "web", "web"]


async def test_a_command_that_watches_keeps_printing_changes(kubectl: Kubectl) -> None:
    await kubectl("create", "configmap", "one", "--from-literal=a=b")
    words = ("get", "configmaps", "--watch", "--output-watch-events")

    async with kubectl.follow(*words) as line:
        before = [await line(), await line()]
        await kubectl("label", "configmap", "one", "x=y")
        after = await line()

    assert [each.split()[0] for each in (*before, after)] == ["EVENT", "ADDED", "MODIFIED"]


@pytest.mark.parametrize(
    ("what", "part"),
    [
        (("pod", "-l", "app=web"), "Controlled By:  ReplicaSet/web-"),
        (("node", "node-1"), "Non-terminated Pods:"),
        (("deployment", "web"), "2 desired | 2 updated | 2 total | 2 available"),
        (("namespace", "default"), "Status:       Active"),
    ],
)
async def test_objects_are_described(web: Kubectl, what: tuple[str, ...], part: str) -> None:
    assert part in await web("describe", *what)


async def test_custom_resources_are_described(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=NODE_POOL)

    assert "Weight:  10" in await kubectl("describe", "nodepool", "general")


async def test_events_are_printed(web: Kubectl) -> None:
    events = await web("events", "--for=deployment/web")
    as_objects = await web("get", "events")

    assert "ScalingReplicaSet" in events
    assert "Successfully assigned default/web-" in as_objects


async def test_rights_are_printed(kubectl: Kubectl) -> None:
    assert await kubectl("auth", "can-i", "delete", "nodes") == "yes\n"
    assert "kubernetes-admin" in await kubectl("auth", "whoami")


@pytest.mark.parametrize(
    "words",
    [
        ("logs", "deployment/web"),
        ("exec", "deployment/web", "--", "ls"),
        ("attach", "deployment/web"),
        ("port-forward", "deployment/web", ":80"),
        ("top", "pods"),
        ("top", "nodes"),
    ],
    ids=" ".join,
)
async def test_subresources_of_containers_are_refused(web: Kubectl, words: tuple[str, ...]) -> None:
    run = await web.run(*words)

    assert run.code == 1
    assert "there are no containers here" in run.err


async def test_health_can_be_asked_for(kubectl: Kubectl) -> None:
    assert await kubectl("get", "--raw", "/readyz") == "ok"


async def test_a_wrong_token_is_refused(kubectl: Kubectl, served: ServedCluster) -> None:
    text = served.kubeconfig.read_text()
    served.kubeconfig.write_text(text.replace(served.token, "wrong"))

    run = await kubectl.run("get", "pods")

    assert run.code == 1
    assert "You must be logged in to the server" in run.err
