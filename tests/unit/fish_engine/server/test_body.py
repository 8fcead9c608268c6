"""What a client sent, or one sentence about what is wrong with it."""

import base64

import ormsgpack
import pytest

from fish_engine.errors import BadRequest
from fish_engine.server.body import BodyTooLarge, parse, read_bytes
from fish_engine.server.schemas import TTSBody


async def pieces(*chunks):
    for chunk in chunks:
        yield chunk


async def test_a_body_is_read_to_its_limit_and_no_further():
    assert await read_bytes(pieces(b"ab", b"cd"), limit=4) == b"abcd"
    with pytest.raises(BodyTooLarge, match="larger than 3 bytes"):
        await read_bytes(pieces(b"ab", b"cd"), limit=3)


@pytest.mark.parametrize(
    "content_type", ["application/msgpack", "application/x-msgpack; charset=binary", "Application/MsgPack"]
)
def test_msgpack_carries_recordings_as_they_are(content_type):
    body = ormsgpack.packb({"text": "hi", "references": [{"audio": b"\x00\xff", "text": "x"}], "seed": None})
    assert parse(body, content_type, TTSBody).references[0].audio == b"\x00\xff"


@pytest.mark.parametrize("content_type", ["", "application/json", "application/json; charset=utf-8"])
def test_json_carries_recordings_in_base64(content_type):
    encoded = base64.b64encode(b"\x00\xff").decode()
    body = f'{{"text": "hi", "references": [{{"audio": "{encoded}", "text": "x"}}]}}'.encode()
    assert parse(body, content_type, TTSBody).references[0].audio == b"\x00\xff"


def test_every_fault_is_named_in_one_sentence():
    with pytest.raises(BadRequest) as refusal:
        parse(b'{"text": "", "temperature": 3, "latency": "soon"}', "", TTSBody)
    assert str(refusal.value) == (
        "text: expected some text, found none; temperature: expected less than or equal to 1, found 3; "
        "latency: expected 'low', 'normal' or 'balanced', found 'soon'"
    )


def test_a_recording_is_never_read_back_to_the_client():
    with pytest.raises(BadRequest) as refusal:
        parse(b'{"text": "a", "references": [{"audio": "%s", "text": "x"}]}' % (b"!" * 5000), "", TTSBody)
    assert len(str(refusal.value)) < 300
