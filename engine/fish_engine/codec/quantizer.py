"""The quantiser: latents ↔ ten codes a frame. The first code is semantic, the other nine refine what it leaves."""

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from fish_engine.codec.blocks import downsample, upsample
from fish_engine.codec.carried import Carried, StateLayout
from fish_engine.codec.config import CodecConfig
from fish_engine.codec.lanes import rows_product
from fish_engine.codec.layers import Layer, Shape, unnormalised
from fish_engine.codec.transformer import WindowedTransformer


class Codebook(Layer):
    """One stage: project to a small space, take the nearest entry by angle, project its row back."""

    in_matrix: Tensor  # [code_dim, latent]
    in_bias: Tensor
    directions: Tensor  # [size, code_dim], rows of length 1
    latents: Tensor  # [size, latent]: what each code stands for

    def __init__(self, latent_dim: int, size: int, code_dim: int) -> None:
        super().__init__()
        self.latent_dim, self.size, self.code_dim = latent_dim, size, code_dim

    def published_shapes(self) -> dict[str, Shape]:
        return {
            "in_proj.weight_g": (self.code_dim, 1, 1),
            "in_proj.weight_v": (self.code_dim, self.latent_dim, 1),
            "in_proj.bias": (self.code_dim,),
            "out_proj.weight_g": (self.latent_dim, 1, 1),
            "out_proj.weight_v": (self.latent_dim, self.code_dim, 1),
            "out_proj.bias": (self.latent_dim,),
            "codebook.weight": (self.size, self.code_dim),
        }

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        rows = tensors["codebook.weight"]
        out_matrix = unnormalised(tensors["out_proj.weight_g"], tensors["out_proj.weight_v"]).squeeze(2)
        self.in_matrix = unnormalised(tensors["in_proj.weight_g"], tensors["in_proj.weight_v"]).squeeze(2)
        self.in_bias = tensors["in_proj.bias"]
        self.directions = functional.normalize(rows)
        self.latents = functional.linear(rows, out_matrix, tensors["out_proj.bias"])

    def nearest(self, latents: Tensor) -> Tensor:
        """Return the codes [lanes, 1] of latents [lanes, 1, latent]."""
        projected = functional.normalize(rows_product(latents, self.in_matrix, self.in_bias), dim=-1)
        return rows_product(projected, self.directions, None).argmax(-1)


class Stages(nn.Module):
    """Codebooks under the name that the published format gives them."""

    def __init__(self, codebooks: list[Codebook]) -> None:
        super().__init__()
        self.quantizers = nn.ModuleList(codebooks)


class Quantizer(nn.Module):
    """Latents at the encoder's rate → codes, and codes → latents at the decoder's rate."""

    def __init__(self, encoding: StateLayout, decoding: StateLayout, config: CodecConfig) -> None:
        super().__init__()
        dim = config.latent_dim
        sizes = config.codebook_sizes
        self.downsample = nn.ModuleList(downsample(encoding, dim, stride) for stride in config.resample_strides)
        self.pre_module = WindowedTransformer(encoding, config.frame_transformer, positions_per_frame=1)
        self.semantic_quantizer = Stages([Codebook(dim, sizes[0], config.code_dim)])
        self.quantizer = Stages([Codebook(dim, size, config.code_dim) for size in sizes[1:]])
        self.post_module = WindowedTransformer(decoding, config.frame_transformer, positions_per_frame=1)
        self.upsample = nn.ModuleList(upsample(decoding, dim, stride) for stride in reversed(config.resample_strides))

    @property
    def codebooks(self) -> list[Codebook]:
        """All stages, semantic first."""
        return cast(list[Codebook], [*self.semantic_quantizer.quantizers, *self.quantizer.quantizers])

    def encode(self, x: Tensor, carried: Carried) -> Tensor:
        """Return codes [lanes, codebooks] of latents [lanes, latent, positions]."""
        for block in self.downsample:
            x = block(x, carried)
        x = self.pre_module(x, carried)
        residual = x.transpose(1, 2)  # [lanes, 1, latent]
        codes = []
        for codebook in self.codebooks:
            code = codebook.nearest(residual)
            residual = residual - codebook.latents[code]
            codes.append(code)
        return torch.cat(codes, dim=1)

    def decode(self, codes: Tensor, carried: Carried) -> Tensor:
        """Return latents [lanes, latent, positions] of codes [lanes, codebooks].

        A code beyond the end of its codebook counts as the last entry, as in the reference: the language model's head is
        wider than the residual codebooks.
        """
        x = codes.new_zeros((), dtype=torch.float32)
        for index, codebook in enumerate(self.codebooks):
            x = x + codebook.latents[codes[:, index].clamp(max=codebook.size - 1)]  # [lanes, latent]
        x = self.post_module(x[..., None], carried)
        for block in self.upsample:
            x = block(x, carried)
        return cast(Tensor, x)
