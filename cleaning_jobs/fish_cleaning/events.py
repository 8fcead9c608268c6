"""One line of JSON on stderr for each event that an operator would act on.

The standard library does it: structlog costs a quarter of a second at each start.
"""

import contextlib
import json
import sys
import time


def log_event(event: str, **values: str | int | float | None) -> None:
    """Write the event, a constant, with its values. Never a text of the user's."""
    line = {"event": event, "timestamp": round(time.time(), 3), **values}
    with contextlib.suppress(OSError):  # nobody listens any more; leaving in order matters more
        print(json.dumps(line), file=sys.stderr, flush=True)
