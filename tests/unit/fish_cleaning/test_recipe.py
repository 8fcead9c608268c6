"""Recipes: a mistake is named before anything starts."""

from pathlib import Path

import pytest

from fish_cleaning.errors import BadSetting
from fish_cleaning.recipe import load_recipe, steps_from_json
from fish_cleaning.steps.chain import StepConfigs


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    """Return where a test writes its recipe."""
    return tmp_path / "recipe.yaml"


def test_the_quick_recipe_spells_out_the_defaults() -> None:
    recipe = load_recipe("quick")
    assert recipe.steps == StepConfigs()
    assert recipe.max_speed is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("name: x\nsteps: {clipping: {max_cliped_ratio: 0.1}}", "steps.clipping.max_cliped_ratio"),
        ('name: x\nunits: {max_items: "8"}', "units.max_items"),
        ("name: x\nunits: {max_items: 0}", "max_items 0"),
        ("name: x\nsteps: {speech: {start_probability: 0.2}}", "stop_probability 0.35 and start_probability 0.2"),
        ("name: x\nmax_speed: -1", "max_speed -1"),
        ("steps: {}", "name"),
        ("just words", "the file"),
        ("name: [", "not YAML"),
    ],
)
def test_a_mistake_is_refused_with_the_field_and_the_value(recipe_file: Path, text: str, named: str) -> None:
    recipe_file.write_text(text)
    with pytest.raises(BadSetting) as refused:
        load_recipe(str(recipe_file))
    assert named in str(refused.value)


def test_an_unknown_recipe_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadSetting, match="expected a file or one of quick"):
        load_recipe("qiuck")


def test_what_decides_the_output_decides_the_hash_and_nothing_else(recipe_file: Path) -> None:
    quick = load_recipe("quick")
    recipe_file.write_text("name: other\nunits: {max_items: 3}\nmax_speed: 2.0")
    assert load_recipe(str(recipe_file)).config_hash == quick.config_hash
    recipe_file.write_text("name: quick\nsteps: {speech: {min_speech_ratio: 0.21}}")
    assert load_recipe(str(recipe_file)).config_hash != quick.config_hash


def test_step_configurations_survive_the_way_to_a_child_process() -> None:
    assert steps_from_json('{"speech": {"min_speech_ratio": 0.5}}').speech.min_speech_ratio == 0.5
