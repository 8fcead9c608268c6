import pytest
import torch

from fish_engine import kernels
from fish_engine.kernels import reference

pytestmark = pytest.mark.gpu

LAYER = {"qkv": (6144, 2560), "o": (2560, 4096), "gate_up": (19456, 2560), "down": (2560, 9728)}
ODD = {"small": (1024, 512), "K/128 = 9": (192, 1152), "K/128 = 10": (2560, 1280), "K/128 = 3": (2560, 384)}
TOKENS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 130, 300)
BOUND = 2.0e-3  # rounding the result to bf16 is 1.6e-3 of it


def run(product, residual=None):
    return kernels.fp8_gemm_blockscaled(product.x, product.x_scale, product.weight, product.weight_scale, residual)


@pytest.mark.parametrize("name", [*LAYER, *ODD])
def test_the_product_is_that_of_the_dequantised_operands(make_product, relative_error, name):
    product = make_product(*(LAYER | ODD)[name], max(TOKENS))
    for tokens in TOKENS:
        head = product.head(tokens)
        assert relative_error(run(head), head.exact) <= BOUND, tokens


@pytest.mark.parametrize("name", LAYER)
def test_the_residual_is_added_before_rounding(make_product, relative_error, name):
    product = make_product(*LAYER[name], 33)
    residual = torch.randn_like(product.exact).bfloat16()
    assert relative_error(run(product, residual), product.exact + residual.double()) <= BOUND


@pytest.mark.parametrize("name", LAYER)
def test_nothing_beside_the_output_is_written(make_product, name):
    product = make_product(*LAYER[name], 17)
    guarded = torch.full((19, LAYER[name][0]), float("nan"), device=product.x.device, dtype=torch.bfloat16)
    torch.ops.fish.fp8_gemm_blockscaled(
        product.x, product.x_scale, product.weight, product.weight_scale, None, guarded[1:-1]
    )
    assert torch.isfinite(guarded[1:-1]).all()
    assert guarded[0].isnan().all()
    assert guarded[-1].isnan().all()


@pytest.mark.parametrize("name", LAYER)
def test_a_row_does_not_depend_on_the_other_rows(make_product, name):
    product = make_product(*LAYER[name], 128)
    rows = (0, 1, 5, 7, 15, 31, 63, 127)
    alone = {}
    for row in rows:
        x_scale = torch.zeros(product.x_scale.shape[0], 4, device=product.x.device)
        x_scale[:, 0] = product.x_scale[:, row]
        alone[row] = kernels.fp8_gemm_blockscaled(
            product.x[row : row + 1].contiguous(), x_scale, product.weight, product.weight_scale
        )
    for tokens in (1, 2, 3, 5, 8, 13, 16, 17, 32, 33, 64, 65, 128):
        together = run(product.head(tokens))
        different = [row for row in rows if row < tokens and not torch.equal(together[row], alone[row][0])]
        assert not different, f"with {tokens} tokens, rows {different} differ from the same rows alone"


@pytest.mark.parametrize("name", LAYER)
def test_scales_of_very_different_size_land_on_their_own_blocks(make_product, relative_error, name):
    product = make_product(*LAYER[name], 9)
    exponents = torch.randint(-20, 21, product.weight_scale.shape, device=product.x.device)
    weight_scale = torch.exp2(exponents.float())
    x_scale = torch.exp2(torch.randint(-20, 21, product.x_scale.shape, device=product.x.device).float())
    out = kernels.fp8_gemm_blockscaled(product.x, x_scale, product.weight, weight_scale)
    exact = (
        reference.dequantize_activations(product.x, x_scale).double()
        @ reference.dequantize_weight(product.weight, weight_scale).double().t()
    )
    assert relative_error(out, exact) <= BOUND


def test_partial_sums_are_promoted_before_the_tensor_cores_lose_bits(device, relative_error):
    # Products of one sign and full size: unpromoted over K = 9728, their sum would be off by several per mille.
    x = torch.full((8, 9728), 448.0, device=device).to(torch.float8_e4m3fn)
    weight = (torch.rand(2560, 9728, device=device) * 200 + 248).to(torch.float8_e4m3fn)
    x_scale, weight_scale = torch.ones(76, 8, device=device), torch.ones(20, 76, device=device)
    out = kernels.fp8_gemm_blockscaled(x, x_scale, weight, weight_scale)
    assert relative_error(out, x.double() @ weight.double().t()) <= BOUND


@pytest.mark.parametrize("name", LAYER)
def test_replays_are_bit_equal_under_memory_pressure(make_product, name):
    product = make_product(*LAYER[name], 16)
    out = torch.empty(16, LAYER[name][0], dtype=torch.bfloat16, device=product.x.device)

    def launch():
        torch.ops.fish.fp8_gemm_blockscaled(product.x, product.x_scale, product.weight, product.weight_scale, None, out)

    launch()
    expected = out.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(4):
            launch()
    pressure, side = torch.zeros(2**26, device=product.x.device), torch.cuda.Stream()
    differences = torch.zeros((), dtype=torch.int64, device=product.x.device)
    for replay in range(2000):
        if replay % 8 == 0:
            with torch.cuda.stream(side):
                pressure.add_(1.0)
        out.fill_(float("nan"))
        graph.replay()
        differences += (out != expected).sum()
    assert differences.item() == 0


@pytest.mark.parametrize("name", LAYER)
@pytest.mark.parametrize("tokens", [1, 8, 64, 128])
def test_overlapping_launches_change_nothing(make_product, programmatic_launch, name, tokens):
    product = make_product(*LAYER[name], tokens)
    programmatic_launch(False)
    plain = run(product)
    programmatic_launch(True)
    overlapped = [run(product) for _ in range(5)]
    assert all(torch.equal(plain, out) for out in overlapped)


def test_a_graph_reads_weights_that_were_rewritten_in_place(make_product):
    product = make_product(2560, 4096, 8)
    out = torch.empty(8, 2560, dtype=torch.bfloat16, device=product.x.device)
    arguments = (product.x, product.x_scale, product.weight, product.weight_scale, None, out)
    torch.ops.fish.fp8_gemm_blockscaled(*arguments)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.ops.fish.fp8_gemm_blockscaled(*arguments)
    product.weight_scale.mul_(2)
    graph.replay()
    replayed = out.clone()
    torch.ops.fish.fp8_gemm_blockscaled(*arguments)
    assert torch.equal(replayed, out)


def test_no_call_waits_for_the_gpu(make_product):
    product = make_product(2560, 4096, 8)
    run(product)
    torch.cuda.set_sync_debug_mode("error")
    try:
        run(product)
    finally:
        torch.cuda.set_sync_debug_mode("default")
