"""The plan: which recordings make up the job, cut into units. Written once, never changed."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from fish_cleaning.clip import Item
from fish_cleaning.errors import BadInput
from fish_cleaning.recipe import Recipe, UnitLimits
from fish_cleaning.source import Source
from fish_cleaning.store import Store

PLAN_KEY: Final = "plan.json"
_PROBE_KEY: Final = "probe"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What one lease covers and one commit publishes. Its id follows from its content and the configuration."""

    id: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All units of a job."""

    recipe_name: str
    config_hash: str
    input_uri: str
    units: tuple[Unit, ...]

    @property
    def items_total(self) -> int:
        """Count the recordings of all units."""
        return sum(len(unit.items) for unit in self.units)


def make_plan(items: Sequence[Item], *, input_uri: str, recipe: Recipe) -> Plan:
    """Cut the items into units. They are ordered by id, a hash, so that long and short recordings mix."""
    ordered = sorted(items, key=lambda item: item.id)
    units = tuple(
        Unit(id=_unit_id(group, recipe.config_hash), items=tuple(group)) for group in _groups(ordered, recipe.units)
    )
    return Plan(recipe_name=recipe.name, config_hash=recipe.config_hash, input_uri=input_uri, units=units)


def _groups(items: Sequence[Item], limits: UnitLimits) -> Iterator[list[Item]]:
    group: list[Item] = []
    group_bytes = 0
    for item in items:
        if group and (len(group) == limits.max_items or group_bytes + item.size_bytes > limits.max_bytes):
            yield group
            group, group_bytes = [], 0
        group.append(item)
        group_bytes += item.size_bytes
    if group:
        yield group


def _unit_id(items: Sequence[Item], config_hash: str) -> str:
    identity = "\n".join([config_hash, *(item.id for item in items)])
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def ensure_plan(store: Store, source: Source, recipe: Recipe) -> Plan:
    """Return the job's plan: the one that is there, else a new one; of workers that plan at once, the first decides."""
    input_uri = source.uri
    plan = read_plan(store)
    if plan is None:
        items = source.items()
        if not items:
            raise BadInput(f"input {source.uri}: no recordings in it; expected files such as .wav, .flac or .mp3")
        _check_conditions(store)
        made = make_plan(items, input_uri=input_uri, recipe=recipe)
        plan = made if store.create(PLAN_KEY, to_json(made)) else read_plan(store)
    if plan is None:
        raise BadInput(f"output: {PLAN_KEY} disappeared while it was read; expected nobody to change the output")
    _check_same_job(plan, input_uri=input_uri, recipe=recipe)
    return plan


def _check_conditions(store: Store) -> None:
    """Refuse storage that lets two workers create one name: both would believe that they have published a unit."""
    store.create(_PROBE_KEY, b"first")
    if store.create(_PROBE_KEY, b"second"):
        raise BadInput(
            f"output: {_PROBE_KEY} was created twice; expected storage that honours If-None-Match on writes, or a file "
            "system whose link(2) fails where the name exists"
        )


def _check_same_job(plan: Plan, *, input_uri: str, recipe: Recipe) -> None:
    if plan.config_hash != recipe.config_hash:
        raise BadInput(
            f"output was written with recipe {plan.recipe_name} (configuration {plan.config_hash}), this is recipe "
            f"{recipe.name} (configuration {recipe.config_hash}); expected the same recipe or another output"
        )
    if plan.input_uri != input_uri:
        raise BadInput(
            f"output was written from input {plan.input_uri}, this is {input_uri}; expected the same or another output"
        )


def read_plan(store: Store) -> Plan | None:
    """Return the plan of an output, or None where there is none yet."""
    text = store.get(PLAN_KEY)
    return None if text is None else from_json(text)


def to_json(plan: Plan) -> bytes:
    """Write a plan."""
    return json.dumps({"format": _FORMAT} | asdict(plan)).encode()


def from_json(text: bytes) -> Plan:
    """Read a plan."""
    try:
        raw = json.loads(text)
        if raw["format"] != _FORMAT:
            raise BadInput(f"{PLAN_KEY}: format {raw['format']}, expected {_FORMAT}: written by another version")
        units = tuple(Unit(id=unit["id"], items=tuple(Item(**item) for item in unit["items"])) for unit in raw["units"])
        return Plan(
            recipe_name=raw["recipe_name"], config_hash=raw["config_hash"], input_uri=raw["input_uri"], units=units
        )
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{PLAN_KEY}: not a plan: {error!r}; expected the output folder of a cleaning job") from error
