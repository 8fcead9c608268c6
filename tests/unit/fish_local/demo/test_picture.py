"""The picture of a run is well-formed and shows each state that occurred."""

from xml.etree import ElementTree

import pytest

from fish_local.demo.board import Snapshot
from fish_local.demo.picture import COLOURS, draw

RUN = (
    Snapshot(elapsed_s=0, listeners=1, gpus={"serving": 1, "fill": 3}),
    Snapshot(elapsed_s=4, listeners=9, gpus={"serving": 1, "fill": 1, "checkpointing": 2}),
    Snapshot(elapsed_s=8, listeners=9, gpus={"serving": 3, "fill": 1}),
)
SVG = "{http://www.w3.org/2000/svg}"


def test_each_state_has_area_in_proportion():
    root = ElementTree.fromstring(draw(RUN, title="a run"))
    areas = {
        colour: sum(
            float(bar.get("width")) * float(bar.get("height"))
            for bar in root.iter(f"{SVG}rect")
            if bar.get("fill") == colour and float(bar.get("height")) > 12
        )
        for colour in COLOURS.values()
    }
    assert areas[COLOURS["fill"]] == pytest.approx(2 * areas[COLOURS["serving"]], rel=0.01)
    assert areas[COLOURS["checkpointing"]] == pytest.approx(areas[COLOURS["serving"]], rel=0.01)
    assert areas[COLOURS["free"]] == 0


def test_a_picture_needs_something_to_show():
    with pytest.raises(ValueError, match="two snapshots"):
        draw(RUN[:1], title="too short")
