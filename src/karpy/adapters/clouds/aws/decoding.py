"""Decoders that read large answers of AWS in another thread, to keep the event loop free."""

import asyncio
from typing import Final

from aiobotocore.parsers import AioResponseParser, AioResponseParserFactory
from botocore.model import Shape
from botocore.parsers import ResponseParser, ResponseParserFactory

from karpy.adapters.clouds.aws.calls import JsonObject

_LARGE: Final = 100_000
"""From this size in bytes on, decoding blocks the event loop longer than a thread costs."""


class OffLoopParsers:
    """Makes the decoders of answers; replaces `response_parser_factory` of a botocore session."""

    def __init__(self) -> None:
        self._usual = AioResponseParserFactory()
        self._plain = ResponseParserFactory()

    def set_parser_defaults(self, **defaults: object) -> None:
        """Set the settings of all further decoders."""
        self._usual.set_parser_defaults(**defaults)
        self._plain.set_parser_defaults(**defaults)

    def create_parser(self, protocol_name: str) -> AioResponseParser:
        """Return a decoder of a protocol; only EC2 has large answers."""
        usual = self._usual.create_parser(protocol_name)
        if protocol_name != "ec2":
            return usual
        return _OffLoopParser(usual, self._plain.create_parser(protocol_name))


class _OffLoopParser:
    def __init__(self, usual: AioResponseParser, plain: ResponseParser) -> None:
        self._usual = usual
        self._plain = plain

    async def parse(self, response: JsonObject, shape: Shape) -> JsonObject:
        if len(response["body"]) < _LARGE:
            parsed: JsonObject = await self._usual.parse(response, shape)
            return parsed
        return await asyncio.to_thread(self._plain.parse, response, shape)
