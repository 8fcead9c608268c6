"""What can go wrong in the engine, by who can put it right."""


class EngineError(Exception):
    """Anything that this package raises on purpose."""


class BadCheckpoint(EngineError):  # noqa: N818 - the name is the sentence
    """The files of a model or codec cannot be used; the message names the file, key or tensor and what was expected."""


class BadRequest(EngineError):  # noqa: N818
    """A client asked for something that cannot be done; the message is meant for the client."""


class Overloaded(EngineError):  # noqa: N818
    """The queue is full; `retry_after_s` is when a place should be free."""

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Draining(EngineError):  # noqa: N818
    """The engine is about to stop and takes no new requests."""


class Unauthorized(EngineError):  # noqa: N818
    """A client brought no key, or one that is not known."""


class BadVoiceFolder(EngineError):  # noqa: N818
    """The folder of stored voices cannot be used; the message names the file."""


class UnknownVoice(BadRequest):
    """There is no voice with this id."""


class VoiceExists(BadRequest):
    """There is a voice with this id already."""


class ExposedWithoutKeys(EngineError):  # noqa: N818
    """The server would speak for anybody on the internet."""
