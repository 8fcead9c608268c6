"""Reports travel unchanged, and a broken one is never read as zero."""

import json

import pytest

from fish_contracts.reports import BadReport, LoadReport, ProgressReport

LOAD = LoadReport(active_streams=3, queued_streams=0, max_streams=4, is_draining=False)


def test_a_report_reads_back_as_it_was_written():
    progress = ProgressReport(
        units_total=9,
        units_committed=2,
        items_total=90,
        items_committed=19,
        items_rejected=1,
        audio_s=3.5,
        work_at_risk_s=0,
    )
    assert LoadReport.from_json(LOAD.to_json()) == LOAD
    assert ProgressReport.from_json(progress.to_json()) == progress


def test_fields_of_a_newer_writer_are_ignored():
    assert LoadReport.from_json(json.dumps({**json.loads(LOAD.to_json()), "voice": "x"})) == LOAD


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("active_streams", None),
        ("active_streams", -1),
        ("queued_streams", "0"),
        ("queued_streams", 1.5),
        ("max_streams", True),
        ("is_draining", 0),
    ],
)
def test_a_wrong_field_is_named(field, value):
    with pytest.raises(BadReport, match=field):
        LoadReport.from_json(json.dumps({**json.loads(LOAD.to_json()), field: value}))


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", "null"])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(BadReport):
        LoadReport.from_json(text)


def test_nan_is_not_a_number_of_seconds():
    with pytest.raises(BadReport, match="audio_s"):
        ProgressReport.from_json(
            '{"units_total":1,"units_committed":0,"items_total":1,"items_committed":0,"items_rejected":0,'
            '"audio_s":NaN,"work_at_risk_s":0}'
        )
