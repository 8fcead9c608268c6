"""kopf's decorators and nothing else: every event pokes the one control loop.

No handler keeps state, needs a finalizer or writes to the object that it handles; what an event was about is read anew.
"""

import time
from collections.abc import Mapping

import kopf

from fish_contracts.labels import API_GROUP, API_VERSION, WORK_CLASS
from fish_operator.access import connection
from fish_operator.departures import Departures
from fish_operator.loop import ControlLoop
from fish_operator.reading import departed_view
from fish_operator.wire import PodOnWire


def register(
    registry: kopf.OperatorRegistry, *, settings: kopf.OperatorSettings, loop: ControlLoop, departures: Departures
) -> None:
    """Make kopf watch our resources and our pods."""

    @kopf.on.login(registry=registry)
    def login(**_: object) -> kopf.ConnectionInfo:
        return connection(settings)

    @kopf.on.event(API_GROUP, API_VERSION, "ttsdeployments", registry=registry)
    @kopf.on.event(API_GROUP, API_VERSION, "cleaningjobs", registry=registry)
    async def resource_changed(**_: object) -> None:
        loop.poke()

    @kopf.on.event("", "v1", "pods", labels={WORK_CLASS: kopf.PRESENT}, registry=registry)
    async def pod_changed(type: str | None, body: Mapping[str, object], **_: object) -> None:  # noqa: A002 - kopf's name
        pod = PodOnWire.model_validate(dict(body))
        departed = departed_view(pod, is_deleted=type == "DELETED", now_s=time.time())
        if departed is not None:
            departures.add(departed)
        loop.poke()


def kopf_settings() -> kopf.OperatorSettings:
    """Return kopf's settings: watches that end and start anew, no posting of events, no scanning for new resources."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False  # what we have to say is in the status and in the log
    settings.scanning.disabled = True  # the CRDs come with the chart, before the operator does
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.connect_timeout = 10
    settings.networking.request_timeout = 30
    return settings
