import pytest

from karpy.codec.fields import JsonObject
from karpy.codec.fieldselectors import read_field_selector
from karpy.errors import BadRequest
from karpy.model.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    EVENTS_EVENT,
    JOB,
    NODE,
    NODE_POOL,
    POD,
    PRIORITY_CLASS,
    Kind,
)

POD_ON_NODE = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"nodeName": "n1", "restartPolicy": "Always"},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("kind", "text", "obj"),
    [
        (POD, "", POD_ON_NODE),
        (POD, "metadata.name=web,metadata.namespace=shop", POD_ON_NODE),
        (POD, "spec.nodeName==n1", POD_ON_NODE),
        (POD, "spec.nodeName!=n2,status.phase!=Failed", POD_ON_NODE),
        (POD, "spec.hostNetwork=false,status.nominatedNodeName=", POD_ON_NODE),
        (NODE, "spec.unschedulable=false", {"metadata": {}}),
        (NODE, "spec.unschedulable=true", {"spec": {"unschedulable": True}}),
        (JOB, "status.successful=2", {"status": {"succeeded": 2}}),
        (EVENT, "involvedObject.name=a,type!=Warning", {"involvedObject": {"name": "a"}}),
        (EVENT, "source=me", {"source": {"component": "me"}}),
        (EVENTS_EVENT, "regarding.kind=Pod", {"regarding": {"kind": "Pod"}}),
        (CONFIG_MAP, r"metadata.name=a\,b\=c\\d", {"metadata": {"name": r"a,b=c\d"}}),
    ],
)
def test_a_field_selector_matches_what_it_means(kind: Kind, text: str, obj: JsonObject) -> None:
    assert read_field_selector(kind, text).matches(obj)


def test_a_field_selector_matches_nothing_else() -> None:
    assert not read_field_selector(POD, "spec.nodeName=n2").matches(POD_ON_NODE)
    assert not read_field_selector(POD, "spec.nodeName!=n1").matches(POD_ON_NODE)


def test_the_only_value_a_field_may_have_is_known() -> None:
    selector = read_field_selector(POD, "spec.nodeName=n1,status.phase!=Failed")

    assert selector.exactly("spec.nodeName") == "n1"
    assert selector.exactly("status.phase") is None


def test_custom_resources_may_offer_fields() -> None:
    selector = read_field_selector(NODE_POOL, "spec.weight=5", ["spec.weight"])

    assert selector.matches({"spec": {"weight": 5}})


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        (POD, "spec.image=x", "field label not supported: spec.image"),
        (NODE_POOL, "spec.weight=5", "field label not supported: spec.weight"),
        (JOB, "spec.x=1", 'field label "spec.x" not supported for Job'),
        (
            DEPLOYMENT,
            "spec.replicas=1",
            (
                '"spec.replicas" is not a known field selector: only "metadata.name", '
                '"metadata.namespace"'
            ),
        ),
        (
            PRIORITY_CLASS,
            "value=1",
            '"value" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (POD, "web", "invalid selector: 'web'; can't understand 'web'"),
    ],
)
def test_a_field_that_is_not_offered_is_refused(kind: Kind, text: str, why: str) -> None:
    with pytest.raises(BadRequest) as error:
        read_field_selector(kind, text)

    assert error.value.message == why
    assert error.value.status == 400
