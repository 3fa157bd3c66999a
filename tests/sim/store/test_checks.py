import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import Invalid
from karpy.model.kinds import (
    CRON_JOB,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    PRIORITY_CLASS,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    Kind,
)
from karpy.sim.store.store import Store
from tests.sim.store.worlds import a_deployment, labelled, with_spec

CONTAINER = {"name": "c", "image": "i:1"}


def refusal(store: Store, kind: Kind, obj: JsonObject) -> str:
    with pytest.raises(Invalid) as error:
        store.create(kind, obj)
    assert error.value.status == 422
    return error.value.message


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"replicas": -1}, "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        ({"selector": None}, "spec.selector: Required value"),
        (
            {"selector": {}},
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            {"selector": {"matchLabels": {"app": "db"}}},
            (
                'spec.template.metadata.labels: Invalid value: {"app":"web"}: '
                "`selector` does not match template `labels`"
            ),
        ),
        ({"strategy": {"type": "Hope"}}, 'spec.strategy.type: Unsupported value: "Hope"'),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            "may not be 0 when `maxSurge` is 0",
        ),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
    ],
)
def test_a_deployment_with_a_fault_is_refused(store: Store, spec: JsonObject, why: str) -> None:
    message = refusal(store, DEPLOYMENT, a_deployment(**spec))

    assert message.startswith('Deployment.apps "web" is invalid: ')
    assert why in message


def in_default(name: str, **fields: object) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


TEMPLATE = {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}


@pytest.mark.parametrize(
    ("kind", "obj", "why"),
    [
        (
            JOB,
            in_default("j", spec={"template": {"spec": {"containers": [CONTAINER]}}}),
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        (
            JOB,
            in_default("j", spec={"template": TEMPLATE, "parallelism": -1}),
            "spec.parallelism: Invalid value: -1",
        ),
        (
            CRON_JOB,
            in_default("j", spec={"jobTemplate": {"spec": {"template": TEMPLATE}}}),
            "spec.schedule: Required value",
        ),
        (SERVICE, in_default("s", spec={}), "spec.ports: Required value"),
        (
            SERVICE,
            in_default("s", spec={"ports": [{"port": 1}, {"port": 2}]}),
            "spec.ports[0].name: Required value",
        ),
        (
            NODE,
            {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "No"}]}},
            "metadata.taints[0].effect: Unsupported value",
        ),
        (
            NODE,
            {
                "metadata": {"name": "n"},
                "spec": {"taints": [{"key": "a", "effect": "NoExecute"}] * 2},
            },
            "taints must be unique by key and effect pair",
        ),
        (
            DISRUPTION_BUDGET,
            in_default("b", spec={"minAvailable": 1, "maxUnavailable": 1}),
            "minAvailable and maxUnavailable cannot be both set",
        ),
        (
            DISRUPTION_BUDGET,
            in_default("b", spec={"minAvailable": "1"}),
            "a valid percent string must be",
        ),
        (
            DISRUPTION_BUDGET,
            in_default("b", spec={"minAvailable": "101%"}),
            "must not be greater than 100%",
        ),
        (
            DISRUPTION_BUDGET,
            in_default("b", spec={"minAvailable": -1}),
            "must be greater than or equal to 0",
        ),
        (PERSISTENT_VOLUME_CLAIM, in_default("c", spec={}), "at least 1 access mode is required"),
        (STORAGE_CLASS, {"metadata": {"name": "s"}}, "provisioner: Required value"),
        (
            PRIORITY_CLASS,
            {"metadata": {"name": "p"}, "value": 2_000_000_000},
            "maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            PRIORITY_CLASS,
            {"metadata": {"name": "system-x"}, "value": 1},
            "reserved for system use only",
        ),
    ],
)
def test_other_kinds_with_a_fault_are_refused(
    store: Store, kind: Kind, obj: JsonObject, why: str
) -> None:
    assert why in refusal(store, kind, obj)


def change_refusal(store: Store, kind: Kind, new: JsonObject) -> str:
    with pytest.raises(Invalid) as error:
        store.replace(kind, new)
    return error.value.message


def test_the_selector_of_a_workload_is_immutable(store: Store) -> None:
    made = store.create(DEPLOYMENT, labelled(a_deployment(), app="web"))
    template = {**made["spec"]["template"], "metadata": {"labels": {"app": "db"}}}
    selector = {"matchLabels": {"app": "db"}}

    assert change_refusal(
        store, DEPLOYMENT, with_spec(made, selector=selector, template=template)
    ) == (
        'Deployment.apps "web" is invalid: spec.selector: Invalid value: '
        '{"matchLabels":{"app":"db"}}: field is immutable'
    )


def test_most_of_a_stateful_set_stays_what_it_is(store: Store) -> None:
    made = store.create(STATEFUL_SET, a_deployment())

    assert "updates to statefulset spec for fields other than" in change_refusal(
        store, STATEFUL_SET, with_spec(made, serviceName="other")
    )
    assert store.replace(STATEFUL_SET, with_spec(made, replicas=3))["spec"]["replicas"] == 3


def test_the_template_of_a_job_is_immutable(store: Store) -> None:
    made = store.create(JOB, in_default("j", spec={"template": TEMPLATE}))
    template = {**made["spec"]["template"], "spec": {**TEMPLATE["spec"], "hostNetwork": True}}

    assert "spec.template: Invalid value" in change_refusal(
        store, JOB, with_spec(made, template=template)
    )
    assert store.replace(JOB, with_spec(made, parallelism=2))["spec"]["parallelism"] == 2


@pytest.mark.parametrize(
    ("kind", "obj", "change", "why"),
    [
        (
            NODE,
            {"metadata": {"name": "n"}, "spec": {"providerID": "a"}},
            {"spec": {"providerID": "b"}},
            'may not change providerID except from "" to valid',
        ),
        (
            PRIORITY_CLASS,
            {"metadata": {"name": "p"}, "value": 1},
            {"value": 2},
            "value: Forbidden: may not be changed in an update.",
        ),
        (
            STORAGE_CLASS,
            {"metadata": {"name": "s"}, "provisioner": "a"},
            {"provisioner": "b"},
            "provisioner: Invalid value",
        ),
        (
            PERSISTENT_VOLUME_CLAIM,
            in_default(
                "c",
                spec={
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1"}},
                },
            ),
            {
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "resources": {"requests": {"storage": "1"}},
                }
            },
            "spec is immutable after creation",
        ),
        (
            SERVICE,
            in_default("s", spec={"ports": [{"port": 1}]}),
            {"spec": {"ports": [{"port": 1}], "clusterIP": "10.0.0.1"}},
            "may not change once set",
        ),
    ],
)
def test_some_fields_are_immutable(
    store: Store, kind: Kind, obj: JsonObject, change: JsonObject, why: str
) -> None:
    made = store.create(kind, obj)

    assert why in change_refusal(store, kind, {**made, **change})


def test_a_service_keeps_the_address_that_a_replacement_leaves_out(store: Store) -> None:
    service = in_default("s", spec={"ports": [{"port": 1}]})
    made = store.create(SERVICE, service)

    changed = store.replace(SERVICE, labelled(service, app="web"))

    assert changed["spec"] == made["spec"]


def test_a_namespace_keeps_its_finalizer(store: Store) -> None:
    store.create(NAMESPACE, {"metadata": {"name": "shop"}})

    changed = store.replace(NAMESPACE, {"metadata": {"name": "shop", "labels": {"a": "b"}}})

    assert changed["spec"] == {"finalizers": ["kubernetes"]}
    assert changed["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": "shop"}
