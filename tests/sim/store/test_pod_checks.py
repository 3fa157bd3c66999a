import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest, Invalid
from karpy.model.kinds import (
    NAMESPACE,
    POD,
    Kind,
)
from karpy.sim.store.answers import FieldsInvalid
from karpy.sim.store.store import Store
from tests.sim.store.worlds import a_pod, with_meta, with_spec

CONTAINER = {"name": "c", "image": "i:1"}


def refusal(store: Store, kind: Kind, obj: JsonObject) -> str:
    with pytest.raises(Invalid) as error:
        store.create(kind, obj)
    assert error.value.status == 422
    return error.value.message


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image: Required value"),
        ({"containers": [{"image": "i"}]}, "spec.containers[0].name: Required value"),
        (
            {"restartPolicy": "Maybe"},
            (
                'spec.restartPolicy: Unsupported value: "Maybe": supported values: '
                '"Always", "OnFailure", "Never"'
            ),
        ),
        ({"volumes": [{"emptyDir": {}}]}, "spec.volumes[0].name: Required value"),
        (
            {"activeDeadlineSeconds": 0},
            (
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and "
                "2147483647, inclusive"
            ),
        ),
    ],
)
def test_a_pod_with_one_fault_is_refused(store: Store, spec: JsonObject, why: str) -> None:
    assert refusal(store, POD, a_pod(**spec)) == f'Pod "web" is invalid: {why}'


@pytest.mark.parametrize(
    ("container", "why"),
    [
        ({"name": "C"}, 'spec.containers[0].name: Invalid value: "C": a lowercase RFC 1123 label'),
        (
            {"imagePullPolicy": "Often"},
            'spec.containers[0].imagePullPolicy: Unsupported value: "Often"',
        ),
        (
            {"ports": [{"containerPort": 0}]},
            "spec.containers[0].ports[0].containerPort: Required value",
        ),
        (
            {"ports": [{"containerPort": 70000}]},
            "Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        ({"env": [{"value": "x"}]}, "spec.containers[0].env[0].name: Required value"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            {"resources": {"requests": {"cpu": "-1"}}},
            (
                'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must '
                "be greater than or equal to 0"
            ),
        ),
        (
            {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            (
                'spec.containers[0].resources.requests: Invalid value: "2": must be '
                "less than or equal to cpu limit of 1"
            ),
        ),
        (
            {"resources": {"requests": {"a.b/gpu": "1"}}},
            "Limit must be set for non overcommitable resources",
        ),
        ({"resources": {"requests": {"gpu": "1"}}}, "must be a standard resource for containers"),
    ],
)
def test_a_container_with_a_fault_is_refused(store: Store, container: JsonObject, why: str) -> None:
    assert why in refusal(store, POD, a_pod(containers=[{**CONTAINER, **container}]))


@pytest.mark.parametrize(
    ("toleration", "why"),
    [
        ({"operator": "Equal"}, "operator must be Exists when `key` is empty"),
        (
            {"key": "a", "operator": "Exists", "value": "b"},
            "value must be empty when `operator` is 'Exists'",
        ),
        ({"key": "a", "effect": "Push"}, 'Unsupported value: "Push"'),
        (
            {"key": "a", "tolerationSeconds": 1},
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
    ],
)
def test_a_toleration_makes_sense(store: Store, toleration: JsonObject, why: str) -> None:
    assert why in refusal(store, POD, a_pod(tolerations=[toleration]))


@pytest.mark.parametrize(
    ("spread", "why"),
    [
        ({}, "maxSkew: Invalid value: 0: must be greater than zero"),
        ({"maxSkew": 1}, "topologyKey: Required value: can not be empty"),
        ({"maxSkew": 1, "topologyKey": "a"}, "whenUnsatisfiable: Unsupported value"),
    ],
)
def test_a_spread_makes_sense(store: Store, spread: JsonObject, why: str) -> None:
    assert why in refusal(store, POD, a_pod(topologySpreadConstraints=[spread]))


def test_all_faults_are_reported_together_with_their_causes(store: Store) -> None:
    with pytest.raises(FieldsInvalid) as error:
        store.create(POD, a_pod(containers=[{}]))

    assert error.value.message == (
        'Pod "web" is invalid: [spec.containers[0].name: Required value, '
        "spec.containers[0].image: Required value]"
    )
    assert error.value.details["causes"][0] == {
        "reason": "FieldValueRequired",
        "message": "Required value",
        "field": "spec.containers[0].name",
    }


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ({"name": ""}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "Web"}, 'metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain'),
        ({"name": "x" * 300}, "must be no more than 253 bytes"),
        ({"labels": {"a b": "c"}}, 'metadata.labels: Invalid value: "a b": name part must consist'),
        ({"labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c": a valid label must be'),
        ({"annotations": {"a b": "c"}}, "metadata.annotations: Invalid value"),
        ({"annotations": {"a": "b" * 300_000}}, "metadata.annotations: Too long"),
        ({"finalizers": ["a b"]}, "metadata.finalizers: Invalid value"),
        ({"finalizers": ["done"]}, "neither a standard finalizer name nor is it fully qualified"),
        ({"ownerReferences": [{"kind": "Node"}]}, "metadata.ownerReferences.apiVersion"),
    ],
)
def test_metadata_makes_sense(store: Store, meta: JsonObject, why: str) -> None:
    assert why in refusal(store, POD, with_meta(a_pod(), **meta))


def test_an_object_has_one_controller(store: Store) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}

    why = refusal(store, POD, with_meta(a_pod(), ownerReferences=[owner, {**owner, "uid": "v"}]))

    assert "Only one reference can have Controller set to true" in why


def test_the_name_of_a_namespace_is_a_label(store: Store) -> None:
    assert "must not contain dots" in refusal(store, NAMESPACE, {"metadata": {"name": "a.b"}})


@pytest.mark.parametrize(
    "obj",
    [
        a_pod(containers={}),
        a_pod(containers=["c"]),
        a_pod(containers=[{**CONTAINER, "resources": "much"}]),
        a_pod(nodeSelector={"a": 1}),
        a_pod(hostNetwork="yes"),
        with_meta(a_pod(), labels=["a"]),
        with_meta(a_pod(), name=5),
        {**a_pod(), "spec": "s"},
    ],
)
def test_a_field_of_the_wrong_type_is_a_bad_request(store: Store, obj: JsonObject) -> None:
    with pytest.raises(BadRequest, match="cannot be handled as a Pod: json: cannot unmarshal"):
        store.create(POD, obj)


def test_what_is_no_quantity_is_a_bad_request(store: Store) -> None:
    container = {**CONTAINER, "resources": {"requests": {"cpu": "many"}}}

    with pytest.raises(BadRequest, match="quantities must match the regular expression"):
        store.create(POD, a_pod(containers=[container]))


def change_refusal(store: Store, kind: Kind, new: JsonObject) -> str:
    with pytest.raises(Invalid) as error:
        store.replace(kind, new)
    return error.value.message


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"nodeName": "n1"}, "spec: Forbidden: pod updates may not change fields other than"),
        (
            {"containers": [CONTAINER, {**CONTAINER, "name": "d"}]},
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            {"tolerations": []},
            (
                "spec.tolerations: Forbidden: existing toleration can not be modified "
                "except its tolerationSeconds"
            ),
        ),
        (
            {"schedulingGates": [{"name": "late"}]},
            "only deletion is allowed, but found new scheduling gate 'late'",
        ),
        ({"activeDeadlineSeconds": -1}, "spec.activeDeadlineSeconds: Invalid value: -1"),
    ],
)
def test_most_of_a_pod_stays_what_it_is(store: Store, change: JsonObject, why: str) -> None:
    made = store.create(POD, a_pod(tolerations=[{"key": "a", "operator": "Exists"}]))

    assert why in change_refusal(store, POD, with_spec(made, **change))


def test_some_of_a_pod_may_change(store: Store) -> None:
    made = store.create(POD, a_pod(schedulingGates=[{"name": "wait"}]))
    more = {"key": "a", "operator": "Exists"}

    changed = store.replace(
        POD,
        with_spec(
            made,
            containers=[{**made["spec"]["containers"][0], "image": "i:2"}],
            tolerations=[*made["spec"]["tolerations"], more],
            activeDeadlineSeconds=10,
            schedulingGates=[],
            nodeSelector={"zone": "a"},
        ),
    )

    assert changed["spec"]["containers"][0]["image"] == "i:2"
    assert changed["spec"]["nodeSelector"] == {"zone": "a"}
    assert changed["metadata"]["generation"] == 2


def test_a_deadline_only_comes_closer(store: Store) -> None:
    made = store.create(POD, a_pod(activeDeadlineSeconds=10))

    assert "must be less than or equal to previous value" in change_refusal(
        store, POD, with_spec(made, activeDeadlineSeconds=11)
    )
