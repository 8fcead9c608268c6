"""What can go wrong in the operator, as one small tree."""


class OperatorError(Exception):
    """Any error that the operator raises itself."""


class InvalidSpecError(OperatorError):
    """A custom resource passed the API server but cannot be used; the message names the field, its value and what would be right."""


class CredentialsError(OperatorError):
    """There is no usable way to the API server."""


class ApiError(OperatorError):
    """The API server refused a request, or could not be asked."""

    def __init__(self, *, verb: str, path: str, status: int, message: str) -> None:
        super().__init__(f"{verb} {path}: {status} {message}")
        self.message = message
        self.status = status
        """HTTP status, or 0 when there was no answer."""

    @property
    def is_gone(self) -> bool:
        """The object does not exist (any more), which ends a deletion as well as success does."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """The object exists already, or is not the one that was meant."""
        return self.status == 409
