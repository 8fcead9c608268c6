"""What an error of object storage means: ask again, there is none, somebody was faster, or give up with a reason.

obstore tells most errors apart by text only, so the texts are read here and nowhere else.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PreconditionError,
)


class Garbled(Exception):  # noqa: N818 - the name is the sentence
    """An object does not lie in the storage as it was sent."""


StorageError = BaseError | FileNotFoundError | TimeoutError | Garbled
STORAGE_ERRORS: Final = (BaseError, FileNotFoundError, TimeoutError, Garbled)
"""What a request may raise: obstore reports a missing object as Python's own FileNotFoundError."""


class FaultKind(Enum):
    """What to do about an error."""

    PASSING = "ask again"
    ABSENT = "there is no such object"
    TAKEN = "the condition of the write does not hold"
    UNUSABLE = "this location cannot be used"
    SETTING = "the endpoint or the credentials are wrong"
    SETTING_AT_FIRST = "a wrong setting, unless the storage has answered before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error understood. `text` says what was wrong and what would be right, without the location."""

    kind: FaultKind
    text: str


_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_PASSING_STATUS: Final = frozenset({408, 429, *range(500, 600)})
_NO_BUCKET: Final = "NoSuchBucket"
_DENIED_STATUS: Final = frozenset({401, 403})
_PASSING_CODES: Final = frozenset(
    {"BadDigest", "ConditionalRequestConflict", "IncompleteBody", "OperationAborted", "RequestTimeout", "SlowDown"}
)
_CREDENTIAL_CODES: Final = frozenset(
    {"ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "RequestTimeTooSkewed", "SignatureDoesNotMatch"}
)
_CREDENTIALS_WANTED: Final = (
    "expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY that it knows, and a clock that is right"
)
_ENDPOINT_WANTED: Final = "expected AWS_ENDPOINT_URL to name an S3 server, such as http://host:8333"
# Seen in obstore's description of the cause where no server has answered.
_SETTINGS_BY_CAUSE: Final = (
    (
        "/latest/api/token",
        "no credentials; expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a machine with a role",
    ),
    ("dns error", f"the endpoint's name is not known; {_ENDPOINT_WANTED}"),
    ("InvalidContentType", "the endpoint does not speak TLS; expected http:// in front of it"),
    ("invalid list response", f"what answers there is no S3 server; {_ENDPOINT_WANTED}"),
    ("ETag Header missing", f"what answers there is no S3 server; {_ENDPOINT_WANTED}"),
    ("ertificate", "the endpoint's certificate is not trusted; expected one that this machine's authorities signed"),
)


def fault_of(error: StorageError) -> Fault:
    """Understand an error of obstore, or a request that took too long."""
    told = str(error)
    code, status = _first(_CODE, told), int(_first(_STATUS, told) or 0)
    if code == _NO_BUCKET:
        return _refusal(told, code, status)
    if code in _PASSING_CODES or status in _PASSING_STATUS:
        return Fault(kind=FaultKind.PASSING, text=f"the server answered {status} {code}".rstrip())
    match error:
        case TimeoutError() | Garbled():
            return Fault(kind=FaultKind.PASSING, text=told or "no answer in time")
        case AlreadyExistsError() | PreconditionError():
            return Fault(kind=FaultKind.TAKEN, text="somebody else was faster")
        case NotFoundError() | FileNotFoundError():
            return Fault(kind=FaultKind.ABSENT, text="no such object")
    return _refusal(told, code, status) if status else _silence(told)


def _silence(told: str) -> Fault:
    """Understand an error without an answer that can be used."""
    if "invalid path" in told:
        what = f"it holds an object with a name that cannot be used ({told.splitlines()[0]})"
        return Fault(kind=FaultKind.UNUSABLE, text=f"{what}; expected names without control characters, '.' and '//'")
    for cause, text in _SETTINGS_BY_CAUSE:
        if cause in told:
            return Fault(kind=FaultKind.SETTING_AT_FIRST, text=text)
    return Fault(kind=FaultKind.PASSING, text="no connection")


def _refusal(told: str, code: str, status: int) -> Fault:
    """Understand why a server does not do what it was asked."""
    if "/latest/api/token" in told:  # the machine's own role service, and not the storage
        return _silence(told)
    if code == _NO_BUCKET:
        return Fault(kind=FaultKind.UNUSABLE, text="no such bucket; expected one that exists")
    if code in _CREDENTIAL_CODES:
        return Fault(kind=FaultKind.SETTING, text=f"the server refuses the credentials ({code}); {_CREDENTIALS_WANTED}")
    if status in _DENIED_STATUS:
        return Fault(
            kind=FaultKind.UNUSABLE, text=f"{code or status}; expected a key that may list, read and write here"
        )
    if not code:
        return Fault(kind=FaultKind.SETTING, text=f"what answers there is no S3 server; {_ENDPOINT_WANTED}")
    return Fault(kind=FaultKind.SETTING, text=f"the server answered {status} {code}; is AWS_REGION right?")


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match.group(1) if match else ""
