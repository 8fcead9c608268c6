"""A recipe: what the steps are asked for and how the work is cut. Read from YAML, checked strictly, before anything starts."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Final

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from fish_cleaning.errors import BadSetting
from fish_cleaning.steps.chain import VERSIONS, StepConfigs

_HASH_CHARS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLimits:
    """How much work one lease covers. Changes how work is spread, never what comes out of it."""

    max_items: int = 8
    max_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        """Refuse units that hold nothing."""
        if self.max_items < 1 or self.max_bytes < 1:
            raise ValueError(f"max_items {self.max_items} and max_bytes {self.max_bytes}: expected at least 1 each")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A checked recipe. `max_speed` caps each worker, in seconds of audio a second; nothing caps it when None."""

    name: str
    steps: StepConfigs = field(default_factory=StepConfigs)
    units: UnitLimits = field(default_factory=UnitLimits)
    max_speed: float | None = None

    @property
    def config_hash(self) -> str:
        """Name everything that decides the output: each step's configuration and version."""
        decisive = json.dumps({"steps": asdict(self.steps), "versions": VERSIONS}, sort_keys=True)
        return hashlib.sha256(decisive.encode()).hexdigest()[:_HASH_CHARS]


class _RecipeFile(BaseModel):
    """The form of a recipe file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    steps: StepConfigs = StepConfigs()
    units: UnitLimits = UnitLimits()
    max_speed: float | None = None


def load_recipe(name_or_path: str) -> Recipe:
    """Return the recipe of that file, or the one that ships under that name."""
    text = _recipe_text(name_or_path)
    try:
        document = yaml.safe_load(text)
        # As JSON, because only there strictness forbids "8" for 8 and still takes a mapping for a record.
        checked = _RecipeFile.model_validate_json(json.dumps(document, default=str))
    except yaml.YAMLError as error:
        raise BadSetting(f"recipe {name_or_path}: not YAML: {error}") from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}" for one in error.errors())
        raise BadSetting(f"recipe {name_or_path}: {problems}") from error
    check_max_speed(checked.max_speed)
    return Recipe(name=checked.name, steps=checked.steps, units=checked.units, max_speed=checked.max_speed)


def steps_from_json(text: str) -> StepConfigs:
    """Read the configurations of the steps, as one worker process hands them to another."""
    return TypeAdapter(StepConfigs).validate_json(text)


def check_max_speed(max_speed: float | None) -> None:
    """Refuse a cap under which nothing would ever be done."""
    if max_speed is not None and not 0 < max_speed < float("inf"):
        raise BadSetting(f"max_speed {max_speed}: expected seconds of audio a second, above 0")


def _recipe_text(name_or_path: str) -> str:
    shipped = resources.files("fish_cleaning").joinpath("recipes")
    names = sorted(entry.name.removesuffix(".yaml") for entry in shipped.iterdir() if entry.name.endswith(".yaml"))
    if name_or_path in names:
        return shipped.joinpath(f"{name_or_path}.yaml").read_text(encoding="utf-8")
    try:
        return Path(name_or_path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"recipe {name_or_path}: {error}; expected a file or one of {', '.join(names)}") from error
