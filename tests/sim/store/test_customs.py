import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest, Invalid, NotFound
from karpy.model.kinds import CUSTOM_RESOURCE, Kind
from karpy.ports.objects import Patch, PatchType, Query
from karpy.sim.store.answers import FieldsInvalid, required
from karpy.sim.store.store import Store
from tests.sim.store.worlds import (
    WIDGET,
    SetClock,
    a_definition,
    a_widget,
    merge_of,
    with_meta,
    with_spec,
)


class ColorNeeded:
    """A validator that wants a color and fills in a size."""

    def __init__(self, definition: JsonObject) -> None:
        self.name = definition["metadata"]["name"]

    def admit(
        self, obj: JsonObject, old: JsonObject | None, *, subresource: str = ""
    ) -> JsonObject:
        assert subresource in {"", "status"}
        if "color" not in obj["spec"]:
            raise FieldsInvalid(WIDGET, obj["metadata"]["name"], [required("spec.color")])
        assert old is None or old["metadata"]["name"] == obj["metadata"]["name"]
        return {**obj, "spec": {"size": 1, **obj["spec"]}}


@pytest.fixture
def defined(store: Store) -> Store:
    store.create(CUSTOM_RESOURCE, a_definition(subresources={"status": {}}))
    return store


def test_a_definition_is_established_at_once(store: Store) -> None:
    made = store.create(CUSTOM_RESOURCE, a_definition())

    conditions = {each["type"]: each["status"] for each in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert made["status"]["storedVersions"] == ["v1"]
    assert made["status"]["acceptedNames"]["listKind"] == "WidgetList"
    assert store.get(CUSTOM_RESOURCE, "widgets.example.com") == made


def test_the_kind_of_a_definition_is_served(defined: Store) -> None:
    made = defined.create(WIDGET, a_widget(color="red"))

    assert (made["apiVersion"], made["kind"]) == ("example.com/v1", "Widget")
    assert defined.list(WIDGET) == [made]
    served = defined.kinds.by_plural("example.com", "v1", "widgets")
    assert served is not None
    assert served.short_names == ("wd",)
    assert defined.kinds.by_name("example.com/v1", "Widget") == served


def test_messages_name_the_group_of_a_custom_resource(defined: Store) -> None:
    with pytest.raises(NotFound) as error:
        defined.get(WIDGET, "w", "default")

    assert error.value.message == 'widgets.example.com "w" not found'


def test_the_status_is_apart_if_the_definition_says_so(defined: Store) -> None:
    made = defined.create(WIDGET, {**a_widget(color="red"), "status": {"on": True}})
    wish = {**with_meta(made, labels={"a": "b"}), "status": {"on": True}}

    changed = defined.replace(WIDGET, wish, subresource="status")

    assert "status" not in made
    assert changed["status"] == {"on": True}
    assert "labels" not in changed["metadata"]
    assert changed["metadata"]["generation"] == 1


def test_without_a_status_endpoint_the_status_is_like_the_rest(store: Store) -> None:
    store.create(CUSTOM_RESOURCE, a_definition())
    made = store.create(WIDGET, {**a_widget(), "status": {"on": True}})

    changed = store.replace(WIDGET, {**made, "status": {"on": False}})

    assert made["status"] == {"on": True}
    assert changed["status"] == {"on": False}
    assert changed["metadata"]["generation"] == 2


def test_a_custom_resource_is_never_replaced_without_a_version(defined: Store) -> None:
    made = defined.create(WIDGET, a_widget())

    with pytest.raises(Invalid, match=r"metadata\.resourceVersion: Invalid value: 0: must be"):
        defined.replace(WIDGET, with_meta(made, resourceVersion=""))


def test_a_validator_fills_in_and_refuses(clock: SetClock) -> None:
    store = Store(clock, validator=ColorNeeded)
    store.create(CUSTOM_RESOURCE, a_definition(subresources={"status": {}}))

    made = store.create(WIDGET, a_widget(color="red"))

    assert made["spec"] == {"size": 1, "color": "red"}
    with pytest.raises(Invalid) as error:
        store.patch(WIDGET, "w", merge_of({"spec": {"color": None}}), namespace="default")
    assert error.value.message == ('Widget.example.com "w" is invalid: spec.color: Required value')


def test_fields_can_be_made_selectable(store: Store) -> None:
    store.create(CUSTOM_RESOURCE, a_definition(selectableFields=[{"jsonPath": ".spec.color"}]))
    store.create(WIDGET, a_widget("r", color="red"))
    store.create(WIDGET, a_widget("b", color="blue"))

    found = store.list(WIDGET, Query(fields="spec.color=red"))

    assert [each["metadata"]["name"] for each in found] == ["r"]
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.size"):
        store.list(WIDGET, Query(fields="spec.size=1"))


def test_versions_show_the_same_objects(store: Store) -> None:
    definition = a_definition()
    old = {"name": "v1beta1", "served": True, "storage": False}
    definition = with_spec(definition, versions=[*definition["spec"]["versions"], old])
    store.create(CUSTOM_RESOURCE, definition)
    beta = Kind("example.com", "v1beta1", "Widget", "widgets")

    made = store.create(beta, a_widget(color="red"))

    assert made["apiVersion"] == "example.com/v1beta1"
    assert store.get(WIDGET, "w", "default")["apiVersion"] == "example.com/v1"
    assert [each["apiVersion"] for each in store.list(beta)] == ["example.com/v1beta1"]


def test_a_strategic_patch_is_not_for_custom_resources(defined: Store) -> None:
    defined.create(WIDGET, a_widget())

    with pytest.raises(BadRequest) as error:
        defined.patch(WIDGET, "w", Patch(PatchType.STRATEGIC, {}), namespace="default")

    assert error.value.status == 415


def test_objects_go_with_their_definition(defined: Store) -> None:
    defined.create(WIDGET, a_widget())

    assert defined.delete(CUSTOM_RESOURCE, "widgets.example.com") is None
    with pytest.raises(NotFound, match="could not find the requested resource"):
        defined.list(WIDGET)


def test_a_definition_waits_for_its_last_object(defined: Store) -> None:
    defined.create(WIDGET, with_meta(a_widget(), finalizers=["a.b/c"]))

    left = defined.delete(CUSTOM_RESOURCE, "widgets.example.com")

    assert left is not None
    assert "deletionTimestamp" in left["metadata"]
    defined.patch(WIDGET, "w", merge_of({"metadata": {"finalizers": None}}), namespace="default")
    assert defined.find(CUSTOM_RESOURCE, "widgets.example.com") is None


def test_a_changed_definition_counts_from_now_on(defined: Store) -> None:
    made = defined.get(CUSTOM_RESOURCE, "widgets.example.com")
    names = {**made["spec"]["names"], "shortNames": ["wdg"]}

    defined.replace(CUSTOM_RESOURCE, with_spec(made, names=names))

    assert defined.kinds.served(WIDGET).short_names == ("wdg",)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"group": ""}, "spec.group: Required value"),
        ({"scope": "Galaxy"}, 'spec.scope: Unsupported value: "Galaxy"'),
        ({"versions": []}, "must have exactly one version marked as storage version"),
        ({"names": {"kind": "Widget"}}, "spec.names.plural: Required value"),
    ],
)
def test_a_definition_that_cannot_be_served_is_refused(
    store: Store, change: JsonObject, why: str
) -> None:
    with pytest.raises(Invalid) as error:
        store.create(CUSTOM_RESOURCE, with_spec(a_definition(), **change))

    assert why in error.value.message
