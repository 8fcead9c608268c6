"""What the end of a process means to whoever started it: both schedulers and the node read these.

Values follow sysexits.h where it has a word for the case.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit status of every long-running fish-tts process."""

    DONE = 0
    """All work is done, or a drain ended with nothing left to do."""
    FAILED = 1
    """An unexpected error; starting again may help."""
    USAGE = 64
    """The arguments are wrong; starting again will not help."""
    BAD_INPUT = 65
    """Input or output cannot be used as it is, for example an output written under another configuration."""
    PREEMPTED = 75
    """Stopped on request with all finished work safe; start again elsewhere, without back-off."""
    CONFIG = 78
    """A setting is missing or contradicts another; starting again will not help."""
