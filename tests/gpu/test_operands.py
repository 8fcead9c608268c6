import pytest
import torch

from fish_engine import kernels

pytestmark = pytest.mark.gpu


def operands(make_product):
    product = make_product(2560, 512, 8)
    out = torch.empty(8, 2560, dtype=torch.bfloat16, device=product.x.device)
    return {
        "x": product.x,
        "x_scale": product.x_scale,
        "weight": product.weight,
        "weight_scale": product.weight_scale,
        "residual": None,
        "out": out,
    }


WRONG = {
    "weight_scale strided": ("weight_scale", lambda t: t.t().contiguous().t(), "strides [4, 1].*strides [1, 20]"),
    "weight_scale transposed": ("weight_scale", lambda t: t.t(), "shape [20, 4].*shape [4, 20]"),
    "x_scale by token": ("x_scale", lambda t: t.t().contiguous(), "shape [4, 8].*shape [8, 4]"),
    "x of another dtype": ("x", lambda t: t.to(torch.float16), "expected float8_e4m3fn, found float16"),
    "weight on the CPU": ("weight", lambda t: t.cpu(), "expected a tensor on cuda:0"),
    "out of another dtype": ("out", lambda t: t.float(), "expected bfloat16, found float32"),
    "x not aligned": (
        "x",
        lambda t: (
            torch.cat([t.view(torch.uint8).flatten(), t.view(torch.uint8).flatten()[:1]])[1:]
            .view(8, 512)
            .view(torch.float8_e4m3fn)
        ),
        "multiple of 16 bytes, found one 1 past",
    ),
    "K no multiple of 128": ("x", lambda t: t[:, :448].contiguous(), "multiple of 128 .*found 448"),
    "too many tokens": ("x", lambda t: t.repeat(1025, 1), "to 8192, found 8200"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_kernel_cannot_take_is_named_before_anything_is_launched(make_product, case):
    name, change, message = WRONG[case]
    arguments = operands(make_product)
    arguments["out"].fill_(float("nan"))
    changed = arguments | {name: change(arguments[name])}
    escaped = message.replace("[", r"\[").replace("]", r"\]")
    with pytest.raises(RuntimeError, match=escaped):
        torch.ops.fish.fp8_gemm_blockscaled(*changed.values())
    if name != "out":
        torch.cuda.synchronize()
        assert arguments["out"].isnan().all()


def test_the_ops_pass_pytorchs_own_checks(make_product):
    arguments = tuple(operands(make_product).values())
    # Not test_schema: to see whether inputs change it multiplies them, which PyTorch cannot do in e4m3.
    torch.library.opcheck(torch.ops.fish.fp8_gemm_blockscaled.default, arguments, test_utils="test_faketensor")


def test_a_compiled_model_holds_the_ops_in_one_graph(make_product):
    product = make_product(2560, 512, 8)

    def layer(x):
        values, scales = kernels.quantize_fp8(x)
        return kernels.fp8_gemm_blockscaled(values, scales, product.weight, product.weight_scale)

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(product.wide), layer(product.wide))
