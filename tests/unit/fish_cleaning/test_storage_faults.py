"""What errors of object storage mean, by the very texts that obstore gives for answers of real servers."""

import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PermissionDeniedError

from fish_cleaning.storage_faults import FaultKind, Garbled, StorageError, fault_of


def answer(status: str, code: str = "") -> str:
    """Return obstore's words for an answer of a server."""
    body = f"<Error><Code>{code}</Code></Error>" if code else ""
    return f"Error performing PUT http://host/b/k in 1ms - Server returned non-2xx status code: {status}: {body}"


NO_CONNECTION = "Error performing GET http://host/b/k in 135µs - HTTP error: error sending request\n\nDebug source: "


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (GenericError(answer("503 Service Unavailable", "SlowDown")), FaultKind.PASSING, "answered 503 SlowDown"),
        (GenericError(answer("500 Internal Server Error")), FaultKind.PASSING, "answered 500"),
        (GenericError(answer("429 Too Many Requests")), FaultKind.PASSING, "answered 429"),
        (GenericError(answer("400 Bad Request", "RequestTimeout")), FaultKind.PASSING, "answered 400 RequestTimeout"),
        (AlreadyExistsError(answer("409 Conflict", "ConditionalRequestConflict")), FaultKind.PASSING, "answered 409"),
        (GenericError(NO_CONNECTION + "Connection refused"), FaultKind.PASSING, "no connection"),
        (TimeoutError(), FaultKind.PASSING, "no answer in time"),
        (Garbled("it did not arrive"), FaultKind.PASSING, "it did not arrive"),
        (AlreadyExistsError(answer("412 Precondition Failed", "PreconditionFailed")), FaultKind.TAKEN, "faster"),
        (FileNotFoundError(answer("404 Not Found", "NoSuchKey")), FaultKind.ABSENT, "no such object"),
        (FileNotFoundError(answer("404 Not Found", "NoSuchBucket")), FaultKind.UNUSABLE, "no such bucket"),
        (GenericError(answer("404 Not Found", "NoSuchBucket")), FaultKind.UNUSABLE, "no such bucket"),
        (PermissionDeniedError(answer("403 Forbidden", "AccessDenied")), FaultKind.UNUSABLE, "AccessDenied; expected"),
        (GenericError(answer("403 Forbidden", "RequestTimeTooSkewed")), FaultKind.SETTING, "a clock that is right"),
        (GenericError(answer("400 Bad Request", "ExpiredToken")), FaultKind.SETTING, "(ExpiredToken)"),
        (GenericError(answer("404 Not Found")), FaultKind.SETTING, "no S3 server"),
        (GenericError(answer("301 Moved", "PermanentRedirect")), FaultKind.SETTING, "is AWS_REGION right?"),
        (GenericError(NO_CONNECTION + '"dns error"'), FaultKind.SETTING_AT_FIRST, "name is not known"),
        (GenericError("Encountered object with invalid path: a\tb"), FaultKind.UNUSABLE, "a\tb"),
        (
            GenericError("Error performing PUT http://169.254.169.254/latest/api/token - non-2xx status code: 403 F: "),
            FaultKind.SETTING_AT_FIRST,
            "no credentials",
        ),
    ],
)
def test_an_error_is_understood(error: StorageError, kind: FaultKind, text: str) -> None:
    fault = fault_of(error)
    assert fault.kind is kind
    assert text in fault.text
