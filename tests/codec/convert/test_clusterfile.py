import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from karpy.codec.constraints import KEY_HINT
from karpy.codec.convert.drafts import NamedCluster
from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.codec.validation.validator import CrdValidator
from tests.codec.convert.texts import again, converted, notes_in, refused, shown, spec_of

VALIDATORS: Final = {each.kind.name: CrdValidator(each.to_json()) for each in CUSTOM_KINDS}
SHOP: Final = NamedCluster("shop")
FILE: Final = """\
cluster_version: "1.34"
defaults:
  cluster_name: shop
  role: Nodes
  subnet_tags: {tier: private}
  security_group_tags: {tier: nodes}
karpenter:
  version: 1.0.0
  node_pools:
    web_gpu:
      node_class:
        extra_securitygroup_ids: [sg-0a1, sg-0b2]
        gpu_enabled: true
        public: false
        tags: {team: web, cost: 12, kubernetes.io/cluster/shop: owned}
        volumeSize: 100
      annotations: {example.com/owner: web}
      labels: {tier: web, rank: 1}
      limits: {cpu: 100, memory: 400Gi}
      requirements:
        category: {key: karpenter.k8s.aws/instance-category, operator: In, values: [g, p]}
        cpu: {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [3]}
      taints:
      - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
    batch:
      requirements:
      - {key: karpenter.k8s.aws/instance-family, operator: Exists, minValues: 5}
      taints: {batch: {key: batch, effect: NoExecute}}
"""
ENTRY: Final = "karpenter.node_pools: {web: %s}"


def test_every_field_of_a_cluster_file_is_carried_or_named(snapshot: SnapshotAssertion) -> None:
    assert shown(converted(FILE)) == snapshot


def test_what_a_bare_entry_gets_is_named(snapshot: SnapshotAssertion) -> None:
    assert shown(converted(ENTRY % "{}", cluster=SHOP)) == snapshot


def test_options_of_the_call_come_before_the_defaults_of_a_file() -> None:
    given = NamedCluster("other", {"a": "b"}, {"c": "d"})

    spec = spec_of(converted(FILE, role="Other", cluster=given), "EC2NodeClass")

    assert (
        spec["role"],
        spec["subnetSelectorTerms"],
        spec["securityGroupSelectorTerms"][0],
    ) == ("Other", [{"tags": {"a": "b"}}], {"tags": {"c": "d"}})


def test_the_dotted_key_and_the_nested_one_are_the_same() -> None:
    nested = "karpenter: {node_pools: {web: {limits: {cpu: 1}}}}"

    dotted = converted(ENTRY % "{limits: {cpu: 1}}", cluster=SHOP)

    assert converted(nested, cluster=SHOP).objects == dotted.objects


@pytest.mark.parametrize(
    ("size", "written"), [("20", "20Gi"), ('"20"', "20Gi"), ("2Ti", "2Ti"), ("80G", "80G")]
)
def test_a_size_without_a_unit_is_in_gibibytes(size: str, written: str) -> None:
    text = ENTRY % f"{{node_class: {{volumeSize: {size}}}}}"

    disk = spec_of(converted(text, cluster=SHOP), "EC2NodeClass")["blockDeviceMappings"][0]

    assert (disk["deviceName"], disk["ebs"]["volumeSize"]) == ("/dev/xvda", written)


CATEGORY: Final = "karpenter.k8s.aws/instance-category"
ONE: Final = "{requirements: {a: {%s}}}"
WEB: Final = "karpenter.node_pools.web"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            ONE % f"key: {CATEGORY}, operator: In, values: [m, C]",
            (
                f"{WEB}.requirements.a.values[1]",
                f"is `C`, and no instance type has a capital in `{CATEGORY}`",
                "write `c`",
            ),
        ),
        ("{lables: {}}", (f"{WEB}.lables", "is unknown here", "write `labels`")),
        (
            "{node_class: {volume_size: 1}}",
            (f"{WEB}.node_class.volume_size", "is unknown here", "write `volumeSize`"),
        ),
        ("{limits: {cpus: 1}}", (f"{WEB}.limits.cpus", "is unknown here", "write `cpu`")),
        (
            "{limits: {cpu: many}}",
            (
                f"{WEB}.limits.cpu",
                "is the text `many`, not an amount",
                "write it as `100` or `64Gi`",
            ),
        ),
        (
            "{node_class: {extra_securitygroup_ids: [nodes]}}",
            (
                f"{WEB}.node_class.extra_securitygroup_ids[0]",
                "is the text `nodes`, not the id of a security group",
                "write `sg-` and the digits after it",
            ),
        ),
        (
            "{node_class: {volumeSize: big}}",
            (
                f"{WEB}.node_class.volumeSize",
                "is the text `big`, not a size",
                "write it as `100Gi`",
            ),
        ),
        (
            "{node_class: {public: sometimes}}",
            (f"{WEB}.node_class.public", "is the text `sometimes`", "write `true` or `false`"),
        ),
        (
            ONE % "key: a, operator: Inn",
            (
                f"{WEB}.requirements.a.operator",
                "is `Inn`",
                "write one of: DoesNotExist, Exists, In, NotIn, Gt, Gte, Lt, Lte",
            ),
        ),
        (
            ONE % "key: a, operator: Gt, values: [x]",
            (
                f"{WEB}.requirements.a.values",
                "is not one whole number, as Gt needs it",
                'write `["4"]`',
            ),
        ),
        (
            "{labels: {a b: c}}",
            (
                "spec.template.metadata.labels[a b]",
                "is no label key",
                KEY_HINT,
            ),
        ),
        (
            ONE % "key: karpenter.k8s.aws/instance-catgory, operator: Exists",
            (
                "spec.template.spec.requirements[0].key",
                (
                    "is `karpenter.k8s.aws/instance-catgory`: "
                    'label domain "karpenter.k8s.aws" is restricted'
                ),
                "write `karpenter.k8s.aws/instance-category`",
            ),
        ),
        (
            "{node_class: {tags: {'': a}}}",
            (f"{WEB}.node_class.tags", "has an entry without a name", "name it, or remove it"),
        ),
        (
            "{labels: {a: [b]}}",
            (f"{WEB}.labels.a", "is a list, not text", "write one value"),
        ),
    ],
)
def test_an_invalid_entry_is_named(entry: str, problem: tuple[str, str, str]) -> None:
    conversion = converted(ENTRY % entry, cluster=SHOP)

    assert (conversion.objects, refused(conversion)) == ((), [problem])


def test_an_invalid_entry_does_not_prevent_converting_the_others() -> None:
    text = "karpenter.node_pools: {a: {lables: {}}, b: {}}"

    conversion = converted(text, cluster=SHOP)

    assert [each["metadata"]["name"] for each in conversion.objects] == ["b", "b"]
    assert (conversion.total.converted, len(conversion.problems)) == (1, 1)


def test_an_empty_entry_is_a_pool_without_requirements() -> None:
    nothing = converted("karpenter.node_pools: {web: null}", cluster=SHOP)

    assert nothing.objects == converted(ENTRY % "{}", cluster=SHOP).objects


def test_two_entries_do_not_take_one_name() -> None:
    conversion = converted("karpenter.node_pools: {a_b: {}, a-b: {}}", cluster=SHOP)

    hint = "give one of them another name, or convert it in another call"
    assert refused(conversion) == [
        ("karpenter.node_pools.a_b", "is named `a-b` as an object, as `a-b` is", hint),
        ("karpenter.node_pools.a-b", "is named `a-b` as an object, as `a_b` is", hint),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("karpenter.node_pools: []", (f"{WEB[:-4]}", "is a list, not an object")),
        ("{karpenter.node_pools: {}, defaults: {roles: a}}", ("defaults.roles", "is unknown here")),
    ],
)
def test_a_file_that_has_no_pools_is_named(text: str, problem: tuple[str, str]) -> None:
    conversion = converted(text)

    assert [each[:2] for each in refused(conversion)] == [problem]


def test_a_file_without_a_role_and_tags_is_named() -> None:
    where = f"{WEB}.node_class"

    assert refused(converted(ENTRY % "{}")) == [
        (
            where,
            "has no tags to find a subnet by",
            "add `--cluster-name NAME` or `--subnet-tag KEY=VALUE`",
        ),
        (
            where,
            "has no tags to find a security group by",
            "add `--cluster-name NAME` or `--security-group-tag KEY=VALUE`",
        ),
        (where, "has no IAM role", "add `--role NAME` or `--cluster-name NAME`"),
    ]


def test_a_cluster_may_be_named_at_the_top() -> None:
    conversion = converted("{cluster_name: shop, region: a, karpenter.node_pools: {web: {}}}")

    assert notes_in(conversion)[:2] == [("RENAMED", "cluster_name"), ("DROPPED", "region")]
    assert conversion.objects == converted(ENTRY % "{}", cluster=SHOP).objects


def test_all_faults_of_an_entry_are_reported_at_once() -> None:
    entry = (
        "{taint: [], weight: 5, labels: 5, limits: {cpu: x}, taints: [{effect: NoSchedule}],"
        " requirements: {a: {key: a, operator: in}, b: {key: a}},"
        " node_class: {volume: 5, public: no way, volumeSize: 1 TB, tags: 5,"
        " extra_securitygroup_ids: [5]}}"
    )

    assert [
        path.removeprefix(WEB) for path, _, _ in refused(converted(ENTRY % entry, cluster=SHOP))
    ] == [
        ".taint",
        ".weight",
        ".labels",
        ".requirements.a.operator",
        ".requirements.b.operator",
        ".taints[0].key",
        ".limits.cpu",
        ".node_class.volume",
        ".node_class.extra_securitygroup_ids[0]",
        ".node_class.public",
        ".node_class.volumeSize",
        ".node_class.tags",
    ]


def test_fields_that_are_not_about_pools_are_named() -> None:
    assert notes_in(converted(FILE))[:2] == [
        ("DROPPED", "karpenter.version"),
        ("DROPPED", "cluster_version"),
    ]


words = st.sampled_from(["x", "prod", "y"])
texts = st.dictionaries(st.sampled_from(["team", "example.com/tier"]), words | st.integers(0, 9))


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({}, optional=fields)


requirement = st.sampled_from(
    [
        {"key": CATEGORY, "operator": "In", "values": ["c", "m"]},
        {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": [3]},
        {"key": "karpenter.k8s.aws/instance-family", "operator": "Exists", "minValues": 2},
    ]
)
taint: st.SearchStrategy[JsonObject] = st.sampled_from(
    [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": 1, "effect": "NoExecute"}]
)
taints = st.lists(taint, unique_by=lambda each: each["key"])
ids = st.lists(st.sampled_from(["sg-0a1", "sg-0b2"]), max_size=2)
entries = some(
    node_class=some(
        extra_securitygroup_ids=ids,
        gpu_enabled=st.booleans(),
        public=st.booleans(),
        tags=texts,
        volumeSize=st.integers(1, 9999) | st.just("1Ti"),
    ),
    annotations=texts,
    labels=texts,
    limits=some(cpu=st.integers(0, 100) | st.just("100m"), memory=st.just("1Gi")),
    requirements=st.lists(requirement) | st.dictionaries(words, requirement),
    taints=taints | taints.map(lambda each: {str(at): taint for at, taint in enumerate(each)}),
)
files = st.dictionaries(st.sampled_from(["a", "b_c", "D"]), entries, min_size=1)


@given(files)
def test_converted_objects_are_accepted_by_an_api_server(pools: JsonObject) -> None:
    conversion = converted(json.dumps({"karpenter": {"node_pools": pools}}), cluster=SHOP)

    admitted = [VALIDATORS[each["kind"]].admit(each, None) for each in conversion.objects]
    assert (len(admitted), conversion.problems) == (2 * len(pools), ())
    assert again(conversion).objects == conversion.objects


FIELDS: Final = ("annotations", "labels", "limits", "node_class", "requirements", "taints")
junk: st.SearchStrategy[object] = st.sampled_from(
    [True, 0, -1, 1.5, "", "text", [], ["a"], [[]], [{}], {"a": 1}, {"": 1}, {"a": {}}, {"a": [1]}]
)


@given(entries, st.sampled_from(FIELDS), junk)
def test_any_input_is_converted_or_named(entry: JsonObject, field: str, bad: object) -> None:
    pools = {"a": {**entry, field: bad}, "b": bad, "c": entry}

    conversion = converted(json.dumps({"karpenter": {"node_pools": pools}}), cluster=SHOP)

    admitted = [VALIDATORS[each["kind"]].admit(each, None) for each in conversion.objects]
    assert len(admitted) // 2 + len(conversion.problems) == len(pools)


@given(junk, st.sampled_from(["karpenter", "karpenter.node_pools", "defaults", "other"]))
def test_any_field_beside_the_pools_is_named(bad: object, key: str) -> None:
    file = {"karpenter": {"node_pools": {"web": {}}}, key: bad}

    conversion = converted(json.dumps(file), cluster=SHOP)

    assert conversion.total.converted + conversion.total.unchanged + len(conversion.problems) > 0
