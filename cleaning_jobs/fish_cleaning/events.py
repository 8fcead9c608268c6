"""One line of JSON on stderr for each event that an operator would act on.

The standard library does it: structlog costs a quarter of a second at each start.
"""

import json
import sys
import time


def log_event(event: str, **values: str | int | float | None) -> None:
    """Write the event, a constant, with its values. Never a text of the user's."""
    line = {"event": event, "timestamp": round(time.time(), 3), **values}
    print(json.dumps(line), file=sys.stderr, flush=True)
