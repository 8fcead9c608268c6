"""The one home of metric names is consistent."""

from fish_contracts.metrics import all_families


def test_every_series_has_the_prefix_and_a_unit_where_prometheus_wants_one():
    for family in all_families():
        assert family.name.startswith("fish_"), family
        assert family.name.endswith("_total") == (family.kind == "counter"), family
        assert (family.kind == "histogram") == bool(family.buckets), family


def test_no_name_is_taken_twice():
    names = [family.name for family in all_families()]
    assert len(names) == len(set(names))
