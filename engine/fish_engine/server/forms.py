"""Bodies that may come as a form with files, as JSON or as msgpack: their fields, each a list of what was given."""

from collections.abc import Mapping, Sequence

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.types import Message

from fish_engine.errors import BadRequest
from fish_engine.server.body import decoded, read_bytes

Field = str | bytes
_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


class Form:
    """The fields of a body."""

    def __init__(self, fields: Mapping[str, Sequence[Field]]) -> None:
        self._fields = fields

    def texts(self, name: str) -> list[str]:
        """Return all texts of a field."""
        return [value for value in self._fields.get(name, ()) if isinstance(value, str)]

    def text(self, name: str) -> str | None:
        """Return the text of a field, None where there is none."""
        return next(iter(self.texts(name)), None)

    def needed_text(self, name: str) -> str:
        """Return the text of a field that must be there."""
        if not (text := self.text(name)):
            raise BadRequest(f"{name}: expected some text, found none")
        return text

    def files(self, name: str) -> list[bytes]:
        """Return all files of a field."""
        return [value for value in self._fields.get(name, ()) if isinstance(value, bytes)]


async def read_form(request: Request, *, limit: int) -> Form:
    """Return the fields of a body of at most `limit` bytes."""
    content_type = request.headers.get("content-type", "")
    raw = await read_bytes(request.stream(), limit=limit)
    if not content_type.startswith(_FORMS):
        fields = decoded(raw, content_type)
        if not isinstance(fields, dict):
            raise BadRequest(f"the body must be one object, found {type(fields).__name__}")
        return Form({str(name): _values(value) for name, value in fields.items()})

    async def replay() -> Message:
        return {"type": "http.request", "body": raw, "more_body": False}

    whole = Request(request.scope, receive=replay)  # the first one's stream has been read, up to its limit
    grouped: dict[str, list[Field]] = {}
    for name, value in (await whole.form()).multi_items():
        grouped.setdefault(name, []).append(await value.read() if isinstance(value, UploadFile) else value)
    return Form(grouped)


def _values(value: object) -> list[Field]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str | bytes)]
