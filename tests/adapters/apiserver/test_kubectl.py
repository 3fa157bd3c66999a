"""The real kubectl against the embedded cluster."""

import asyncio
import json

import pytest

from karpy.sim.world import World
from karpy.wiring.embedded import ServedCluster
from tests.adapters.apiserver.commands import Kubectl

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: app:1, resources: {requests: {cpu: 100m, memory: 1Gi}}}
"""
NODE_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  weight: 10
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
"""


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@pytest.fixture
async def web(kubectl: Kubectl) -> Kubectl:
    """A kubectl whose cluster runs a deployment."""
    await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    return kubectl


async def test_versions_are_told(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36" in await kubectl("version")


async def test_resources_are_listed(kubectl: Kubectl) -> None:
    listed = rows(await kubectl("api-resources", "--no-headers"))

    assert ["nodepools", "karpenter.sh/v1", "false", "NodePool"] in listed
    assert ["pods", "po", "v1", "true", "Pod"] in listed
    assert not [each for each in listed if "metrics.k8s.io" in each[1]]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("pod.spec.nodeSelector", "Labels a node must have."),
        ("deployment.spec.replicas", "How many pods."),
        ("nodepool.spec.disruption.budgets", "Limits on simultaneous disruption."),
        ("crd", "Brings a kind of its own into the cluster."),
    ],
)
async def test_fields_are_explained(kubectl: Kubectl, path: str, told: str) -> None:
    assert told in await kubectl("explain", path)


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


async def test_a_watch_goes_on(web: Kubectl) -> None:
    watching = asyncio.create_task(
        web.follow("get", "configmaps", "-w", "--output-watch-events", lines=3)
    )
    await asyncio.sleep(1)
    await web("create", "configmap", "one", "--from-literal=a=b")
    await web("label", "configmap", "one", "x=y")

    lines = await watching

    assert [line.split()[0] for line in lines] == ["EVENT", "ADDED", "MODIFIED"]


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (("pod", "-l", "app=web"), "Controlled By:  ReplicaSet/web-"),
        (("node", "node-1"), "Non-terminated Pods:"),
        (("deployment", "web"), "2 desired | 2 updated | 2 total | 2 available"),
        (("namespace", "default"), "Status:       Active"),
    ],
)
async def test_objects_are_described(web: Kubectl, what: tuple[str, ...], told: str) -> None:
    assert told in await web("describe", *what)


async def test_custom_resources_are_described(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=NODE_POOL)

    assert "Weight:  10" in await kubectl("describe", "nodepool", "general")


async def test_applying_twice_changes_nothing(web: Kubectl) -> None:
    again = await web("apply", "-f", "-", stdin=DEPLOYMENT)
    changed = await web("apply", "-f", "-", stdin=DEPLOYMENT.replace("replicas: 2", "replicas: 1"))

    assert again == "deployment.apps/web unchanged\n"
    assert changed == "deployment.apps/web configured\n"


async def test_the_server_applies_too(kubectl: Kubectl) -> None:
    first = await kubectl("apply", "--server-side", "-f", "-", stdin=NODE_POOL)
    await kubectl("patch", "nodepool", "general", "--type=merge", "-p", '{"spec":{"weight":20}}')

    conflict = await kubectl.run("apply", "--server-side", "-f", "-", stdin=NODE_POOL)
    forced = await kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=NODE_POOL
    )

    assert first == forced == "nodepool.karpenter.sh/general serverside-applied\n"
    assert conflict.code == 1
    assert 'conflict with "kubectl-patch"' in conflict.err
    assert ".spec.weight" in conflict.err


async def test_differences_are_shown(web: Kubectl) -> None:
    same = await web.run("diff", "-f", "-", stdin=DEPLOYMENT)
    other = await web.run("diff", "-f", "-", stdin=DEPLOYMENT.replace("app:1", "app:2"))

    assert (same.code, same.out) == (0, "")
    assert other.code == 1
    assert "+      - image: app:2" in other.out


async def test_unknown_fields_are_refused_with_their_names(kubectl: Kubectl) -> None:
    wrong = DEPLOYMENT.replace("replicas: 2", "replica: 2")

    refused = await kubectl.run("apply", "-f", "-", stdin=wrong)
    warned = await kubectl.run("apply", "--validate=warn", "-f", "-", stdin=wrong)

    assert 'strict decoding error: unknown field "spec.replica"' in refused.err
    assert (warned.code, warned.err) == (0, 'Warning: unknown field "spec.replica"\n')


async def test_an_invalid_object_is_told_field_by_field(kubectl: Kubectl) -> None:
    run = await kubectl.run(
        "apply", "-f", "-", stdin=NODE_POOL.replace("weight: 10", "weight: 999")
    )

    assert run.code == 1
    assert 'The NodePool "general" is invalid: spec.weight: Invalid value: 999' in run.err


@pytest.mark.parametrize(
    "words",
    [
        ("namespace", "team"),
        ("configmap", "one", "--from-literal=a=b"),
        ("secret", "generic", "one", "--from-literal=a=b"),
        ("deployment", "one", "--image=app:1", "--replicas=2"),
        ("job", "one", "--image=app:1"),
        ("cronjob", "one", "--image=app:1", "--schedule=0 * * * *"),
        ("service", "clusterip", "one", "--tcp=80:8080"),
        ("poddisruptionbudget", "one", "--selector=a=b", "--min-available=1"),
        ("serviceaccount", "one"),
        ("priorityclass", "one", "--value=5"),
    ],
    ids=lambda words: words[0],
)
async def test_objects_are_created(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    """These go as protobuf."""
    assert "created" in await kubectl("create", *words)


async def test_objects_are_patched_and_edited(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=NODE_POOL)
    operation = '[{"op":"replace","path":"/spec/weight","value":30}]'

    await kubectl("patch", "nodepool", "general", "--type=json", "-p", operation)
    edited = await kubectl.run(
        "edit", "nodepool", "general", editor="sed -i s/weight:.30/weight:\\ 40/"
    )

    weight = await kubectl("get", "nodepool", "general", "-o", "jsonpath={.spec.weight}")
    assert (edited.code, weight) == (0, "40")


async def test_workloads_are_scaled(web: Kubectl) -> None:
    await web("scale", "deployment/web", "--replicas=3")
    await web("rollout", "status", "deployment/web", "--timeout=20s")

    assert len(rows(await web("get", "pods", "--no-headers"))) == 3


async def test_rollouts_go_on_and_back(web: Kubectl) -> None:
    await web("set", "image", "deployment/web", "main=app:2")
    await web("rollout", "status", "deployment/web", "--timeout=20s")
    history = await web("rollout", "history", "deployment/web")
    await web("rollout", "undo", "deployment/web")
    await web("rollout", "status", "deployment/web", "--timeout=20s")
    await web("rollout", "restart", "deployment/web")
    await web("rollout", "status", "deployment/web", "--timeout=20s")

    image = "jsonpath={.spec.template.spec.containers[0].image}"
    assert [each[0] for each in rows(history)[2:4]] == ["1", "2"]
    assert await web("get", "deployment", "web", "-o", image) == "app:1"


async def test_objects_are_deleted_and_waited_for(web: Kubectl) -> None:
    gone = await web("delete", "deployment", "web", "--wait", "--cascade=foreground")
    await web("delete", "pods", "--all", "--now")

    assert "deleted" in gone
    assert await web("get", "all") == ""


async def test_a_namespace_takes_everything_along(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "team")
    await kubectl("create", "configmap", "one", "-n", "team")

    await kubectl("delete", "namespace", "team", "--wait")

    found = await kubectl.run("get", "namespace", "team")
    assert found.err == 'Error from server (NotFound): namespaces "team" not found\n'


async def test_objects_are_labelled_and_annotated(web: Kubectl) -> None:
    await web("label", "pods", "-l", "app=web", "tier=front")
    await web("annotate", "deployment", "web", "note=hello")

    note = await web("get", "deployment", "web", "-o", "jsonpath={.metadata.annotations.note}")
    labelled = await web("get", "pods", "-l", "tier=front", "-o", "name")
    assert (note, len(labelled.split())) == ("hello", 2)


async def test_nodes_are_tainted_and_drained(web: Kubectl) -> None:
    tainted = await web("taint", "node", "node-1", "team=a:NoSchedule")
    untainted = await web("taint", "node", "node-1", "team-")
    drained = await web.run("drain", "node-2", "--ignore-daemonsets", "--timeout=30s")
    cordoned = rows(await web("get", "nodes"))
    await web("uncordon", "node-2")

    assert (tainted, untainted) == ("node/node-1 tainted\n", "node/node-1 untainted\n")
    assert drained.code == 0
    assert "node/node-2 drained" in drained.out
    assert [each[1] for each in cordoned[1:]] == ["Ready", "Ready,SchedulingDisabled"]


async def test_conditions_are_waited_for(web: Kubectl) -> None:
    available = await web("wait", "deployment/web", "--for=condition=Available", "--timeout=20s")
    running = await web(
        "wait", "pods", "-l", "app=web", "--for=jsonpath={.status.phase}=Running", "--timeout=20s"
    )
    late = await web.run("wait", "deployment/web", "--for=condition=Never", "--timeout=1s")

    assert available == "deployment.apps/web condition met\n"
    assert running.count("condition met") == 2
    assert "timed out waiting" in late.err


async def test_events_are_told(web: Kubectl) -> None:
    events = await web("events", "--for=deployment/web")
    as_objects = await web("get", "events")

    assert "ScalingReplicaSet" in events
    assert "Successfully assigned default/web-" in as_objects


async def test_rights_are_told(kubectl: Kubectl) -> None:
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
async def test_there_are_politely_no_containers(web: Kubectl, words: tuple[str, ...]) -> None:
    run = await web.run(*words)

    assert run.code == 1
    assert "there are no containers here" in run.err


async def test_health_can_be_asked_for(kubectl: Kubectl) -> None:
    assert await kubectl("get", "--raw", "/readyz") == "ok"


async def test_a_new_kind_can_be_used_at_once(kubectl: Kubectl, world: World) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "size": {"type": "integer", "description": "How large it is."}
                            },
                        }
                    },
                }
            ],
        },
    }
    gadget = {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "one"},
        "size": 3,
    }
    await kubectl("create", "-f", "-", stdin=json.dumps(definition))

    made = await kubectl("apply", "-f", "-", stdin=json.dumps(gadget))

    assert made == "gadget.example.com/one created\n"
    assert "How large it is." in await kubectl("explain", "gadget.size")


async def test_a_wrong_token_is_refused(kubectl: Kubectl, served: ServedCluster) -> None:
    text = served.kubeconfig.read_text()
    served.kubeconfig.write_text(text.replace(served.token, "wrong"))

    run = await kubectl.run("get", "pods")

    assert run.code == 1
    assert "You must be logged in to the server" in run.err
