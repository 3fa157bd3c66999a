"""Changing the embedded cluster with the real kubectl."""

import json

import pytest

from tests.e2e.kubectl.commands import DEPLOYMENT, NODE_POOL, Kubectl, rows


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


async def test_an_invalid_object_is_reported_by_field(kubectl: Kubectl) -> None:
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
    """kubectl sends these objects as protobuf."""
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


async def test_a_new_kind_can_be_used_at_once(kubectl: Kubectl) -> None:
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
