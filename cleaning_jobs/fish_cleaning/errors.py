"""Why a cleaning job cannot go on. A bad recording is no error: it is rejected with a reason and the job continues."""

from fish_contracts.exit_codes import ExitCode


class CleaningError(Exception):
    """The job cannot go on; the message says what was wrong and what would be right."""

    exit_code = ExitCode.FAILED


class BadInput(CleaningError):  # noqa: N818 - the name is the sentence
    """The input or the output cannot be used as it is."""

    exit_code = ExitCode.BAD_INPUT


class BadSetting(CleaningError):  # noqa: N818 - the name is the sentence
    """A recipe or an option is wrong."""

    exit_code = ExitCode.CONFIG


class StoreFailed(CleaningError):  # noqa: N818 - the name is the sentence
    """The output could not be written this time, for example because the disk is full; starting again may help."""
