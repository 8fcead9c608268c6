import pytest
import torch

from fish_engine import kernels

pytestmark = pytest.mark.gpu

LAYER = {"qkv": (6144, 2560), "o": (2560, 4096), "gate_up": (19456, 2560), "down": (2560, 9728)}
TOKENS = (1, 2, 7, 8, 9, 16, 17, 32, 33, 64, 65, 128, 200)
BOUND = 2.0e-3


@pytest.mark.parametrize("name", [*LAYER, "odd"])
def test_the_product_is_that_of_the_bf16_activations(make_product, relative_error, name):
    product = make_product(*LAYER.get(name, (192, 1152)), max(TOKENS))
    for tokens in TOKENS:
        head = product.head(tokens)
        out = kernels.w8a16_gemm_blockscaled(head.wide, head.weight, head.weight_scale)
        assert relative_error(out, head.exact_wide) <= BOUND, tokens


@pytest.mark.parametrize("name", LAYER)
def test_a_row_does_not_depend_on_the_other_rows(make_product, name):
    product = make_product(*LAYER[name], 128)
    alone = kernels.w8a16_gemm_blockscaled(product.wide[5:6].contiguous(), product.weight, product.weight_scale)
    for tokens in (6, 8, 9, 17, 33, 64, 65, 128):
        head = product.head(tokens)
        together = kernels.w8a16_gemm_blockscaled(head.wide, head.weight, head.weight_scale)
        assert torch.equal(together[5], alone[0]), tokens
