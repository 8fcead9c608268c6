"""`python -m fish_operator`: run the operator against the cluster of KUBECONFIG, or of the pod it is in."""

import asyncio
import functools
import sys
from collections.abc import Sequence

import aiohttp
import kopf
import structlog
from pydantic import ValidationError

from fish_contracts.exit_codes import ExitCode
from fish_operator import log
from fish_operator.access import connection
from fish_operator.api import ApiServer
from fish_operator.apply import Applier
from fish_operator.departures import Departures
from fish_operator.errors import CredentialsError
from fish_operator.handlers import kopf_settings, register
from fish_operator.health import served
from fish_operator.loop import ControlLoop
from fish_operator.objects import Images
from fish_operator.observe import Observer
from fish_operator.settings import Settings
from fish_operator.telemetry import Telemetry


async def run(settings: Settings) -> None:
    """Run until a signal, or until a part of it ends that must not."""
    watching, departures, telemetry = kopf_settings(), Departures(), Telemetry()
    async with (
        ApiServer(functools.partial(connection, watching)) as api,
        aiohttp.ClientSession() as session,
    ):
        loop = ControlLoop(
            observer=Observer(
                api=api, session=session, departures=departures, report_timeout_s=settings.report_timeout_s
            ),
            applier=Applier(
                api=api,
                images=Images(engine=settings.engine_image, cleaning=settings.cleaning_image),
                count_failure=telemetry.count_action_failure,
            ),
            departures=departures,
            telemetry=telemetry,
            tick_s=settings.tick_s,
        )
        registry = kopf.OperatorRegistry()
        register(registry, settings=watching, loop=loop, departures=departures)
        async with served(host=settings.pod_ip, loop=loop, telemetry=telemetry):
            deciding = asyncio.create_task(loop.run(), name="control loop")
            try:
                await kopf.operator(registry=registry, settings=watching, standalone=True, clusterwide=True)
            finally:
                deciding.cancel()


def main(arguments: Sequence[str]) -> int:
    """Return the exit code."""
    if arguments:
        is_question = arguments[0] in {"-h", "--help"}
        print(_usage(), file=sys.stdout if is_question else sys.stderr)
        return ExitCode.DONE if is_question else ExitCode.USAGE
    try:
        settings = Settings()
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            place = "_".join(map(str, problem["loc"])).upper()
            print(f"FISH_{place}: {problem['msg']} (found {problem['input']!r})", file=sys.stderr)
        return ExitCode.CONFIG
    log.configure(settings.log_level)
    try:
        asyncio.run(run(settings))
    except CredentialsError as error:
        structlog.get_logger("fish_operator").error("no access to the cluster", error=str(error))
        return ExitCode.CONFIG
    return ExitCode.DONE


def _usage() -> str:
    fields = {field.validation_alias or f"FISH_{name.upper()}": field for name, field in Settings.model_fields.items()}
    variables = "\n".join(f"  {variable}={field.default}" for variable, field in fields.items())
    return (
        f"{__doc__}\n\nIt takes no arguments. The environment may set, here with what it is otherwise:\n\n{variables}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
