"""The cap on speed."""

import pytest

from fish_cleaning.pace import Pace


def test_without_a_cap_nothing_waits() -> None:
    assert Pace(max_speed=None).wait_s(100.0, began_at_s=0.0, now_s=0.1) == 0.0


def test_ten_seconds_of_audio_at_speed_five_take_two_seconds() -> None:
    assert Pace(max_speed=5.0).wait_s(10.0, began_at_s=100.0, now_s=100.5) == pytest.approx(1.5)


def test_an_item_that_took_longer_than_its_share_waits_for_nothing() -> None:
    pace = Pace(max_speed=1.0)
    assert pace.wait_s(1.0, began_at_s=0.0, now_s=0.5) == pytest.approx(0.5)
    assert pace.wait_s(1.0, began_at_s=1.0, now_s=3.0) == 0.0


def test_idle_time_is_not_made_up_for() -> None:
    pace = Pace(max_speed=1.0)
    pace.wait_s(1.0, began_at_s=0.0, now_s=0.0)
    assert pace.wait_s(1.0, began_at_s=1000.0, now_s=1000.0) == pytest.approx(1.0)
