import pytest

from fish_local.shape import Shape


def test_a_cluster_has_two_nodes_with_two_gpus_unless_asked_otherwise() -> None:
    assert str(Shape()) == "2 x 2 GPUs"
    assert Shape().node_names == ("node-0", "node-1")


@pytest.mark.parametrize(("nodes", "gpus", "said"), [(0, 2, "got 0"), (101, 2, "got 101"), (1, -1, "got -1")])
def test_an_impossible_shape_is_refused_with_its_number(nodes: int, gpus: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Shape(nodes=nodes, gpus_per_node=gpus)
