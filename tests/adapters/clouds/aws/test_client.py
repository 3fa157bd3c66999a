"""The calls over HTTP, on the fake AWS."""

import asyncio

import pytest

from karpy.adapters.clouds.aws.client import AwsTimeouts, connect_aws
from karpy.adapters.clouds.aws.requests import Answered, Tried
from karpy.adapters.clouds.awsfake.server import FakeAccount
from karpy.errors import AwsRefused, CloudUnavailable, OptionInvalid
from tests.contract.awsclouds import serving


async def test_every_call_is_heard_of_with_its_status() -> None:
    heard: list[Answered] = []
    with serving(FakeAccount(families=("m5",))):
        aws = await connect_aws()
        aws.on_answer = heard.append
        await aws.describe_subnets()
        with pytest.raises(AwsRefused):
            await aws.describe_instances(InstanceIds=[f"i-{'0' * 17}"])
        await aws.close()

    assert [(each.service, each.action, each.status) for each in heard] == [
        ("EC2", "DescribeSubnets", 200),
        ("EC2", "DescribeInstances", 400),
    ]
    assert all(each.seconds > 0 and each.tries == 1 for each in heard)


async def test_an_aws_that_does_not_answer_is_named_with_what_to_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }.items():
        monkeypatch.setenv(key, value)
    heard: list[Answered] = []
    tried: list[Tried] = []
    aws = await connect_aws("eu-west-1", AwsTimeouts(tries=2))
    aws.on_answer, aws.on_try = heard.append, tried.append

    with pytest.raises(CloudUnavailable, match="ec2:DescribeSubnets") as error:
        await aws.describe_subnets()
    await aws.close()

    assert "`eu-west-1` is the region" in error.value.hint
    assert [(each.status, each.tries) for each in heard] == [(0, 2)]
    assert [(each.service, each.action, each.status) for each in tried] == [
        ("EC2", "DescribeSubnets", 0)
    ] * 2


async def test_a_region_that_does_not_exist_is_refused() -> None:
    with pytest.raises(OptionInvalid, match="no region of AWS"):
        await connect_aws("no such region")


async def test_a_page_in_place_of_an_answer_is_no_refusal_of_aws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    broken = await asyncio.start_server(_answer_with_page, "127.0.0.1", 0)
    port = broken.sockets[0].getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    aws = await connect_aws("eu-west-1", AwsTimeouts(tries=1))

    async with broken:
        with pytest.raises(CloudUnavailable, match="no error of AWS \\(HTTP 500\\)") as error:
            await aws.get_products(ServiceCode="AmazonEC2")
    await aws.close()

    assert "html" not in error.value.message


async def _answer_with_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    page = b"<!doctype html><title>500</title>"
    head = f"HTTP/1.1 500 Oh\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n\r\n"
    writer.write(head.encode() + page)
    await writer.drain()
    writer.close()
