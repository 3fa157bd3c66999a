"""Creating, reading and replacing objects."""

import re

import pytest

from karpy.errors import AlreadyExists, ClusterError, Conflict, Invalid, NotFound
from karpy.model.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, NODE_POOL, POD, Kind
from tests.contract.plain import config_map, deployment, meta, node_pool, pod
from tests.contract.worlds import World


async def test_an_object_gets_an_identity(world: World) -> None:
    made = await world.create(CONFIG_MAP, config_map("a", x="1"))

    assert re.fullmatch(r"[0-9a-f-]{36}", made["metadata"]["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["metadata"]["creationTimestamp"])
    assert made["metadata"]["resourceVersion"].isdecimal()
    assert made["metadata"]["namespace"] == world.namespace
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")
    assert made["data"] == {"x": "1"}


async def test_what_was_created_can_be_read(world: World) -> None:
    made = await world.create(CONFIG_MAP, config_map("a", x="1"))

    assert await world.get(CONFIG_MAP, "a") == made


async def test_what_is_not_there_is_not_found(world: World) -> None:
    with pytest.raises(NotFound) as raised:
        await world.get(CONFIG_MAP, "a")

    assert raised.value.status == 404
    assert 'configmaps "a" not found' in raised.value.message


async def test_a_kind_that_is_not_served_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        await world.objects.list(Kind("example.com", "v1", "Thing", "things"))


async def test_a_name_is_taken_once(world: World) -> None:
    await world.create(CONFIG_MAP, config_map("a"))

    with pytest.raises(AlreadyExists) as raised:
        await world.create(CONFIG_MAP, config_map("a"))

    assert 'configmaps "a" already exists' in raised.value.message


async def test_a_generated_name_ends_in_five_letters(world: World) -> None:
    made = await world.create(CONFIG_MAP, {"metadata": {"generateName": "a-"}})

    assert re.fullmatch(r"a-[bcdfghjklmnpqrstvwxz2456789]{5}", made["metadata"]["name"])


async def test_a_name_or_its_beginning_is_needed(world: World) -> None:
    with pytest.raises(Invalid) as raised:
        await world.create(CONFIG_MAP, {"metadata": {}})

    assert "name or generateName is required" in raised.value.message


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a" * 254])
async def test_a_name_must_be_one(world: World, name: str) -> None:
    with pytest.raises(Invalid) as raised:
        await world.create(CONFIG_MAP, config_map(name))

    assert "metadata.name" in raised.value.message


async def test_a_missing_namespace_is_not_made(world: World) -> None:
    with pytest.raises(NotFound) as raised:
        await world.create(CONFIG_MAP, {"metadata": meta("a", namespace="no-such-place")})

    assert 'namespaces "no-such-place" not found' in raised.value.message


async def test_a_new_object_has_no_version_yet(world: World) -> None:
    with pytest.raises(ClusterError) as raised:
        await world.create(CONFIG_MAP, {"metadata": meta("a", resourceVersion="1")})

    assert "resourceVersion should not be set on objects to be created" in raised.value.message


async def test_a_stale_write_is_refused(world: World) -> None:
    stale = await world.create(CONFIG_MAP, config_map("a", x="1"))
    await world.objects.replace(CONFIG_MAP, {**stale, "data": {"x": "2"}})

    with pytest.raises(Conflict) as raised:
        await world.objects.replace(CONFIG_MAP, {**stale, "data": {"x": "3"}})

    assert "the object has been modified" in raised.value.message
    assert (await world.get(CONFIG_MAP, "a"))["data"] == {"x": "2"}


async def test_a_write_without_a_version_wins(world: World) -> None:
    made = await world.create(CONFIG_MAP, config_map("a", x="1"))
    unguarded = {key: each for key, each in made["metadata"].items() if key != "resourceVersion"}

    after = await world.objects.replace(
        CONFIG_MAP, {**made, "metadata": unguarded, "data": {"x": "2"}}
    )

    assert after["data"] == {"x": "2"}
    assert after["metadata"]["uid"] == made["metadata"]["uid"]


async def test_a_write_for_another_incarnation_is_refused(world: World) -> None:
    made = await world.create(CONFIG_MAP, config_map("a"))
    other = {**made["metadata"], "uid": "00000000-0000-0000-0000-000000000000"}
    other.pop("resourceVersion")

    with pytest.raises(Conflict):
        await world.objects.replace(CONFIG_MAP, {**made, "metadata": other})


async def test_replacing_what_is_not_there_fails(world: World) -> None:
    with pytest.raises(NotFound):
        await world.objects.replace(
            CONFIG_MAP, {"metadata": meta("a", namespace=world.namespace), "data": {}}
        )


async def test_a_write_that_changes_nothing_is_none(world: World) -> None:
    made = await world.create(CONFIG_MAP, config_map("a", x="1"))

    after = await world.objects.replace(CONFIG_MAP, made)

    assert after["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_versions_only_grow(world: World) -> None:
    first = await world.create(CONFIG_MAP, config_map("a"))
    second = await world.create(CONFIG_MAP, config_map("b"))
    third = await world.objects.replace(CONFIG_MAP, {**first, "data": {"x": "1"}})

    versions = [int(each["metadata"]["resourceVersion"]) for each in (first, second, third)]

    assert versions == sorted(set(versions))


async def test_a_rehearsal_changes_nothing(world: World) -> None:
    obj = {"metadata": meta("a", namespace=world.namespace)}

    made = await world.objects.create(CONFIG_MAP, obj, dry_run=True)

    assert made["metadata"]["uid"]
    with pytest.raises(NotFound):
        await world.get(CONFIG_MAP, "a")


async def test_a_generation_counts_changes_of_the_specification(world: World) -> None:
    made = await world.create(NODE_POOL, node_pool())
    labelled = {**made["metadata"], "labels": {"x": "y"}}
    same = await world.objects.replace(NODE_POOL, {**made, "metadata": labelled})
    weighed = await world.objects.replace(
        NODE_POOL, {**same, "spec": {**same["spec"], "weight": 9}}
    )

    assert [each["metadata"]["generation"] for each in (made, same, weighed)] == [1, 1, 2]


async def test_a_status_is_written_by_its_subresource_only(world: World) -> None:
    made = await world.create(NODE_POOL, {**node_pool(), "status": {"nodes": 5}})
    whole = {**made, "status": {"nodes": 7}}

    after = await world.objects.replace(NODE_POOL, whole)
    reported = await world.objects.replace(
        NODE_POOL, {**after, "status": {"nodes": 7}}, subresource="status"
    )

    assert "nodes" not in made.get("status", {})
    assert "nodes" not in after.get("status", {})
    assert reported["status"]["nodes"] == 7
    assert reported["metadata"]["generation"] == made["metadata"]["generation"]


async def test_a_status_write_leaves_the_specification_alone(world: World) -> None:
    made = await world.create(NODE_POOL, node_pool())

    after = await world.objects.replace(
        NODE_POOL,
        {**made, "spec": {**made["spec"], "weight": 9}, "status": {"nodes": 1}},
        subresource="status",
    )

    assert after["spec"] == made["spec"]


async def test_most_of_a_pod_stays_as_it_is(world: World) -> None:
    made = await world.create(POD, pod("a"))
    spec = {**made["spec"], "nodeSelector": {"x": "y"}}

    with pytest.raises(Invalid) as raised:
        await world.objects.replace(POD, {**made, "spec": spec})

    assert "pod updates may not change fields other than" in raised.value.message


async def test_a_selector_stays_as_it_is(world: World) -> None:
    made = await world.create(DEPLOYMENT, deployment("a", replicas=0))
    other = deployment("b", replicas=0)["spec"]

    # The controller may have written a status meanwhile.
    meta = {key: each for key, each in made["metadata"].items() if key != "resourceVersion"}

    with pytest.raises(Invalid) as raised:
        await world.objects.replace(DEPLOYMENT, {**made, "metadata": meta, "spec": other})

    assert "field is immutable" in raised.value.message


async def test_a_selector_must_match_its_template(world: World) -> None:
    wrong = deployment("a")
    wrong["spec"] = {**wrong["spec"], "selector": {"matchLabels": {"app": "b"}}}

    with pytest.raises(Invalid) as raised:
        await world.create(DEPLOYMENT, wrong)

    assert "`selector` does not match template `labels`" in raised.value.message


async def test_a_pod_gets_its_defaults(world: World) -> None:
    made = await world.create(POD, pod("a"))

    spec = made["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert made["status"]["phase"] == "Pending"
    assert made["status"]["qosClass"] == "BestEffort"
    assert {(each["key"], each["tolerationSeconds"]) for each in spec["tolerations"]} == {
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    }


async def test_limits_are_requests_where_there_are_none(world: World) -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}

    made = await world.create(POD, pod("a", containers=[container]))

    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


async def test_a_pod_needs_a_container(world: World) -> None:
    with pytest.raises(Invalid) as raised:
        await world.create(POD, pod("a", containers=[]))

    assert "spec.containers: Required value" in raised.value.message


async def test_a_negative_number_of_replicas_is_refused(world: World) -> None:
    with pytest.raises(Invalid) as raised:
        await world.create(DEPLOYMENT, deployment("a", replicas=-1))

    assert "spec.replicas: Invalid value: -1" in raised.value.message


async def test_a_namespace_is_labelled_with_its_name(world: World) -> None:
    made = await world.objects.get(NAMESPACE, world.namespace)

    assert made["metadata"]["labels"]["kubernetes.io/metadata.name"] == world.namespace
    assert made["spec"]["finalizers"] == ["kubernetes"]
    assert made["status"]["phase"] == "Active"
