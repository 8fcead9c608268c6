"""The chart's values and their schema name the same things."""

import json
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[3] / "helm" / "fish-tts"


def value_paths(values: dict[str, Any], prefix: str = "") -> set[str]:
    return {prefix + key for key in values} | {
        path
        for key, value in values.items()
        if value and isinstance(value, dict)
        for path in value_paths(value, f"{prefix}{key}.")
    }


def schema_paths(schema: dict[str, Any], prefix: str = "") -> set[str]:
    fields = schema.get("properties", {})
    return {prefix + key for key in fields} | {
        path for key, field in fields.items() for path in schema_paths(field, f"{prefix}{key}.")
    }


def test_every_value_is_in_the_schema_and_every_field_of_the_schema_has_a_default():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    inside_resources = {path for path in value_paths(values) if path.startswith("operator.resources.")}
    assert value_paths(values) - inside_resources == schema_paths(schema) - {"global"}
