import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.adapters.clouds.aws.builtin import builtin_region
from karpy.codec.recordings import (
    DisruptionRecording,
    PoolRecording,
    Recording,
    RecordingInvalid,
    RecordingReader,
    encode_catalog,
    encode_decision,
    encode_disruption,
    encode_pool,
)
from karpy.codec.sharing import DaemonRow, PodRow, SharedCatalog, join_catalog, share_catalog
from karpy.codec.verdicts import disruption_to_json, pool_verdict_to_json, verdict_to_json
from karpy.core.aws.catalog import CatalogMaker
from karpy.core.disruption.decide import decide_nodes
from karpy.core.scheduling.decide import decide
from karpy.core.staticpools import decide_pool
from karpy.model.commands import Command, CommandNode
from karpy.model.ec2 import InstanceSettings
from karpy.model.instances import PriceList
from karpy.model.nodes import RepairAction, RepairRules
from karpy.model.pods import DaemonSet, Pod
from karpy.model.pools import DisruptionReason, Headcount
from karpy.model.settings import Packing, Settings
from karpy.model.snapshot import (
    ConfirmationQuestion,
    DisruptionQuestion,
    FillUpQuestion,
    LegacyRepairQuestion,
    NodeQuestion,
    PoolQuestion,
    Snapshot,
    ValidationQuestion,
)
from tests.builders import NOON, pod, pods, pool, snapshot
from tests.core.disruption.questions import REPAIRS, questions
from tests.core.disruption.scenes import MINUTE, cluster, node
from tests.core.disruption.scenes import pod as bound_pod
from tests.core.nodepool.questions import pool_questions
from tests.core.nodepool.test_staticcapacity import static
from tests.determinism.verdicts import named_snapshot
from tests.fuzz.clusters import random_snapshot

SMALL = snapshot(pods=[pod("a")], pools=[pool("default")])
KINDS = "catalog/v1 nor decision/v1 nor disruption/v2 nor pool/v1"
POOL = FillUpQuestion(NOON, static(2), Headcount(active=2))
BUSY = cluster(
    node("a"),
    node("b", conditions=[]),
    pods=[bound_pod("x", on="a", do_not_disrupt="true")],
    in_command=frozenset({"b-claim"}),
    repair=RepairRules(REPAIRS, {"uid-b-claim": (NOON - MINUTE, NOON)}),
)
COMMAND_NODE = CommandNode(
    "b", "b-claim", "web", 1_000_000, 3, RepairAction.REBOOT, "Slow/Swapping", 5 * MINUTE, True
)
COMMAND = Command("repair", DisruptionReason.UNHEALTHY, (COMMAND_NODE,), proposed=NOON)
QUESTION = DisruptionQuestion(BUSY, frozenset({"emptiness", "drift"}))
EVERY_KIND = (
    QUESTION,
    ValidationQuestion(BUSY, COMMAND),
    ConfirmationQuestion(BUSY, "repair", (COMMAND_NODE,), True),
    LegacyRepairQuestion(BUSY, "b-claim"),
)


def _encode(question: NodeQuestion, digest: str) -> bytes:
    return encode_disruption(question, decide_nodes(question), digest, "0.1.0")


def _recorded(cluster: Snapshot) -> Recording:
    reader = RecordingReader()
    digest, line = encode_catalog(cluster.catalog)
    reader.read(line)
    read = reader.read(encode_decision(cluster, decide(cluster), digest, "0.1.0"))
    assert isinstance(read, Recording)
    return read


def _recorded_disruption(question: NodeQuestion) -> DisruptionRecording:
    reader = RecordingReader()
    digest, line = encode_catalog(question.snapshot.catalog)
    reader.read(line)
    read = reader.read(_encode(question, digest))
    assert isinstance(read, DisruptionRecording)
    return read


@given(st.integers(0, 1_000_000))
@settings(max_examples=60)
def test_a_recording_reads_the_same(seed: int) -> None:
    cluster = random_snapshot(seed)

    recording = _recorded(cluster)

    assert recording == Recording("0.1.0", cluster, verdict_to_json(decide(cluster)))
    assert decide(recording.snapshot) == decide(cluster)


@pytest.mark.parametrize("question", EVERY_KIND, ids=lambda each: type(each).__name__)
def test_each_kind_of_question_about_nodes_is_recorded_exactly(question: NodeQuestion) -> None:
    verdict = disruption_to_json(decide_nodes(question))

    recording = _recorded_disruption(question)

    assert recording == DisruptionRecording("0.1.0", question, verdict)
    assert recording.moment == NOON


@given(questions())
@settings(max_examples=150)
def test_a_decision_about_nodes_is_recorded_exactly(question: NodeQuestion) -> None:
    verdict = disruption_to_json(decide_nodes(question))

    recording = _recorded_disruption(question)

    assert recording == DisruptionRecording("0.1.0", question, verdict)
    assert disruption_to_json(decide_nodes(recording.question)) == verdict


@given(pool_questions())
@settings(max_examples=100)
def test_a_decision_about_a_pool_is_recorded_exactly(question: PoolQuestion) -> None:
    verdict = decide_pool(question)

    read = RecordingReader().read(encode_pool(question, verdict, "0.1.0"))

    assert read == PoolRecording("0.1.0", question, pool_verdict_to_json(verdict))
    assert decide_pool(read.question) == verdict


@pytest.mark.parametrize("name", ["real-300", "mixed-10", "adv-prefs-60"])
def test_a_workload_is_recorded_exactly(name: str) -> None:
    cluster = named_snapshot(name)

    recording = _recorded(cluster)

    assert recording.snapshot == cluster
    assert verdict_to_json(decide(recording.snapshot)) == recording.verdict


def test_a_catalog_has_one_digest_however_its_offerings_are_kept() -> None:
    """A recording must not depend on the types in memory; older recordings have tuples only."""
    listed = named_snapshot("adv-prefs-60").catalog
    plain = replace(
        listed, types=tuple(replace(each, offerings=(*each.offerings,)) for each in listed.types)
    )

    assert encode_catalog(listed) == encode_catalog(plain)
    assert isinstance(listed.types[0].offerings, PriceList)


def test_the_packing_is_recorded() -> None:
    cheapest = replace(SMALL, settings=Settings(packing=Packing.CHEAPEST))

    assert _recorded(cheapest).snapshot == cheapest


def test_a_recording_from_before_there_was_packing_is_karpenters() -> None:
    reader = RecordingReader()
    digest, line = encode_catalog(SMALL.catalog)
    reader.read(line)
    older = encode_decision(SMALL, decide(SMALL), digest, "0.1.0").replace(
        b',"packing":"Karpenter"', b"", 1
    )

    read = reader.read(older)

    assert b"packing" not in older
    assert isinstance(read, Recording)
    assert read.snapshot == SMALL


def test_every_line_is_one_line() -> None:
    digest, line = encode_catalog(SMALL.catalog)
    decision = encode_decision(SMALL, decide(SMALL), digest, "0.1.0")

    disruption = _encode(QUESTION, digest)

    about_pool = encode_pool(POOL, decide_pool(POOL), "0.1.0")

    lines = (line, decision, disruption, about_pool)
    assert [each.count(b"\n") for each in lines] == [1, 1, 1, 1]
    assert line.startswith(b'{"karpy":"catalog/v1","digest":"')
    assert decision.startswith(b'{"karpy":"decision/v1","by":"0.1.0","catalog":"')
    assert disruption.startswith(b'{"karpy":"disruption/v2","by":"0.1.0","catalog":"')
    assert about_pool.startswith(b'{"karpy":"pool/v1","by":"0.1.0","question":{"asks":"fill-up"')


def test_equal_values_are_equal_lines_in_every_process() -> None:
    """A set of names has another order in each process."""
    settled = frozenset(f"method-{number}" for number in range(20))
    question = DisruptionQuestion(BUSY, settled)

    catalog = msgspec.json.decode(encode_catalog(SMALL.catalog)[1])["catalog"]["rest"]
    asked = msgspec.json.decode(_encode(question, "abc"))["question"]

    assert asked["settled"] == sorted(settled)
    assert catalog["well_known"] == sorted(SMALL.catalog.well_known)


def test_the_digest_of_a_catalog_depends_on_its_content() -> None:
    other = msgspec.structs.replace(SMALL.catalog, reservation_label="x")

    assert encode_catalog(SMALL.catalog)[0] == encode_catalog(SMALL.catalog)[0]
    assert encode_catalog(SMALL.catalog)[0] != encode_catalog(other)[0]


def test_a_decision_about_nodes_has_its_snapshot_once_and_names_its_catalog() -> None:
    line = msgspec.json.decode(_encode(QUESTION, "abc"))

    assert line["catalog"] == "abc"
    assert line["question"]["asks"] == "disruption"
    assert (line["question"]["snapshot"]["pods"], len(line["snapshot"]["pods"])) == ([], 1)
    assert (line["question"]["snapshot"]["nodes"], len(line["snapshot"]["rest"]["nodes"])) == (
        [],
        2,
    )
    assert line["question"]["snapshot"]["catalog"]["types"] == []
    assert line["snapshot"]["rest"]["catalog"]["types"] == []


def test_a_pod_is_recorded_with_all_its_fields() -> None:
    assert PodRow.__struct_fields__ == Pod.__struct_fields__, "add the column to codec/sharing.py"
    assert DaemonRow.__struct_fields__ == DaemonSet.__struct_fields__


def test_only_parts_that_pods_shared_before_are_shared_again() -> None:
    cluster = snapshot(pods=[*pods("a", 2), pod("b", labels={"app": "b"}), pod("c")])

    recording = _recorded(cluster)

    first, second, _, alike = recording.snapshot.pods
    assert first.rules is second.rules
    assert first.labels is second.labels
    assert alike.rules == first.rules
    assert alike.rules is not first.rules


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "it is cut off or no JSON"),
        (b"{", "it is cut off or no JSON"),
        (b"\xff", "it is cut off or no JSON"),
        (b"[]", f"it is neither {KINDS}; another version of karpy may read it"),
        (b'{"karpy":"decision/v9"}', "it is neither catalog/v1 nor decision/v1"),
        (b'{"karpy":"disruption/v1"}', "it is neither catalog/v1 nor decision/v1"),
        (b'{"karpy":"catalog/v1"}', "its fields are not what this karpy expects"),
        (
            (
                b'{"karpy":"catalog/v1","digest":"a","catalog":{"rest":{},"offered":[],"lists":[[0]],'
                b'"types":0,"by_pool":{}}}'
            ),
            "a row names a part that is not there",
        ),
        (
            encode_decision(SMALL, decide(SMALL), "abc", "0.1.0"),
            "what was on sale (abc) is not recorded before it",
        ),
        (encode_decision(SMALL, decide(SMALL), "abc", "0.1.0")[:100], "it is cut off or no JSON"),
        (_encode(QUESTION, "abc"), "what was on sale (abc) is not recorded before it"),
        (_encode(QUESTION, "abc")[:-100], "it is cut off or no JSON"),
        (
            _encode(QUESTION, "abc").replace(b'"asks":"disruption"', b'"asks":"treatment"', 1),
            "its fields are not what this karpy expects",
        ),
        (encode_pool(POOL, decide_pool(POOL), "0.1.0")[:-9], "it is cut off or no JSON"),
        (
            encode_pool(POOL, decide_pool(POOL), "0.1.0").replace(b"fill-up", b"blow-up", 1),
            "its fields are not what this karpy expects",
        ),
    ],
)
def test_an_invalid_line_is_an_error(line: bytes, problem: str) -> None:
    with pytest.raises(RecordingInvalid) as caught:
        RecordingReader().read(line)

    assert str(caught.value).startswith(problem)


def test_types_with_the_same_offerings_write_them_once() -> None:
    """The whole catalog of a region is written again whenever one offering is sold out."""
    region = builtin_region("us-east-1")
    catalog = CatalogMaker().make(region, {"a": InstanceSettings()}, usual=InstanceSettings())

    _, line = encode_catalog(catalog)

    assert len(line) < 1000 * len(catalog.types)
    assert join_catalog(share_catalog(catalog)) == catalog


def test_a_catalog_from_before_types_shared_their_places_is_read() -> None:
    types = tuple(replace(each, offerings=tuple(each.offerings)) for each in SMALL.catalog.types)
    rest = replace(SMALL.catalog, types=(), by_pool={})
    before = SharedCatalog(rest, types, (tuple(range(len(types))),), 0, {})

    read = msgspec.json.decode(msgspec.json.encode(before), type=SharedCatalog)

    assert join_catalog(read) == SMALL.catalog
