"""What can go wrong on the Slurm side. Every message states the value found and what would be right."""

from fish_contracts.exit_codes import ExitCode


class FishSlurmError(Exception):
    """Root of this room's errors; `exit_code` is what the command line ends with."""

    exit_code = ExitCode.FAILED


class BadSetting(FishSlurmError):  # noqa: N818 - the name is the sentence
    """A setting, a file or an argument of ours is wrong; trying again will not help."""

    exit_code = ExitCode.CONFIG


class SlurmFailed(FishSlurmError):  # noqa: N818 - the name is the sentence
    """A Slurm command refused or did not answer; the same call may work later."""


class UnreadableOutput(FishSlurmError):  # noqa: N818 - the name is the sentence
    """Slurm answered in a form that this version does not know, so nothing is concluded from it."""


class MissingPart(FishSlurmError):  # noqa: N818 - the name is the sentence
    """A program, a package or a right that the machine lacks; the message names it."""

    exit_code = ExitCode.CONFIG
