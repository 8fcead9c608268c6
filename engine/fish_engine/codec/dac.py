"""The codec as a whole: frames of codes ↔ samples, both strictly causal, both with their past carried in one row."""

import torch
from torch import Tensor, nn

from fish_engine.codec.blocks import DILATIONS, ResidualUnit
from fish_engine.codec.carried import Carried, StateLayout
from fish_engine.codec.config import CodecConfig, TransformerConfig
from fish_engine.codec.lanes import one_thread_per_product
from fish_engine.codec.layers import CausalConv, CausalTransposedConv, Snake
from fish_engine.codec.quantizer import Quantizer
from fish_engine.codec.transformer import WindowedTransformer

FRAMES_PER_BLOCK = 16
"""Frames that a whole-file call works on at a time: memory stays the same however long the file is."""


class Chain(nn.Module):
    """Layers one after the other, under the name that the published format gives their list."""

    def _run(self, layers: nn.ModuleList, x: Tensor, carried: Carried) -> Tensor:
        for layer in layers:
            x = layer(x) if isinstance(layer, Snake) else layer(x, carried)
        return x


class EncoderBlock(Chain):
    """Three residual units, then a strided convolution to twice the channels, then perhaps a transformer."""

    def __init__(
        self,
        layout: StateLayout,
        channels: int,
        stride: int,
        transformer: TransformerConfig | None,
        positions_per_frame: int,
    ) -> None:
        super().__init__()
        self.block = nn.ModuleList(ResidualUnit(layout, channels, dilation) for dilation in DILATIONS)
        self.block.append(Snake(channels))
        self.block.append(CausalConv(layout, channels, 2 * channels, taps=2 * stride, stride=stride))
        if transformer is not None:
            self.block.append(WindowedTransformer(layout, transformer, positions_per_frame))

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        return self._run(self.block, x, carried)


class Encoder(Chain):
    """Samples [lanes, 1, samples] → latents [lanes, latent, positions] at the rate of the quantiser's input."""

    def __init__(self, layout: StateLayout, config: CodecConfig) -> None:
        super().__init__()
        channels, positions = config.encoder_channels, config.samples_per_frame
        self.block = nn.ModuleList([CausalConv(layout, 1, channels, taps=7)])
        for stride, transformer in zip(config.encoder_strides, config.encoder_transformers, strict=True):
            positions //= stride
            self.block.append(EncoderBlock(layout, channels, stride, transformer, positions))
            channels *= 2
        self.block.append(Snake(channels))
        self.block.append(CausalConv(layout, channels, config.latent_dim, taps=3))

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        return self._run(self.block, x, carried)


class DecoderBlock(Chain):
    """A transposed convolution to half the channels, then three residual units."""

    def __init__(self, layout: StateLayout, channels: int, stride: int) -> None:
        super().__init__()
        self.block = nn.ModuleList(
            [Snake(channels), CausalTransposedConv(layout, channels, channels // 2, stride=stride)]
        )
        self.block.extend(ResidualUnit(layout, channels // 2, dilation) for dilation in DILATIONS)

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        return self._run(self.block, x, carried)


class Decoder(Chain):
    """Latents [lanes, latent, positions] → samples [lanes, 1, samples] between -1 and 1."""

    def __init__(self, layout: StateLayout, config: CodecConfig) -> None:
        super().__init__()
        channels = config.decoder_channels
        self.model = nn.ModuleList([CausalConv(layout, config.latent_dim, channels, taps=7)])
        for stride in config.decoder_strides:
            self.model.append(DecoderBlock(layout, channels, stride))
            channels //= 2
        self.model.append(Snake(channels))
        self.model.append(CausalConv(layout, channels, 1, taps=7))

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        return self._run(self.model, x, carried).tanh()


class Codec(nn.Module):
    """A codec whose module tree follows the published names.

    `decoding` and `encoding` say what a stream's row holds; `decode_frames` and `encode_frames` advance rows.
    """

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.config = config
        self.encoding = StateLayout()
        self.decoding = StateLayout()
        self.encoder = Encoder(self.encoding, config)
        self.quantizer = Quantizer(self.encoding, self.decoding, config)
        self.decoder = Decoder(self.decoding, config)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.quantizer.codebooks[0].latents.device

    @torch.inference_mode()
    def decode_frames(self, codes: Tensor, carried: Carried) -> Tensor:
        """Return the samples [streams, frames * samples_per_frame] of the next codes [streams, codebooks, frames]."""
        lanes = codes.transpose(1, 2).flatten(0, 1)  # [lanes, codebooks]
        with one_thread_per_product():
            samples: Tensor = self.decoder(self.quantizer.decode(lanes, carried), carried)
        return samples.reshape(len(codes), -1)

    @torch.inference_mode()
    def encode_frames(self, samples: Tensor, carried: Carried) -> Tensor:
        """Return the codes [streams, codebooks, frames] of the next samples [streams, frames * samples_per_frame]."""
        lanes = samples.reshape(-1, 1, self.config.samples_per_frame)
        codes = self.quantizer.encode(self.encoder(lanes, carried), carried)  # [lanes, codebooks]
        return codes.view(len(samples), carried.frames, -1).transpose(1, 2)

    def decode(self, codes: Tensor) -> Tensor:
        """Return the sound [batch, 1, T * samples_per_frame] of whole sequences of codes [batch, codebooks, T]."""
        check_codes(codes, self.config)
        carried = Carried.at_start(self.decoding, streams=len(codes), device=self.device)
        pieces = []
        for block in torch.split(codes.to(self.device), FRAMES_PER_BLOCK, dim=2):
            carried = carried.followed_by(block.shape[2])
            pieces.append(self.decode_frames(block, carried))
        return torch.cat(pieces, dim=1)[:, None]

    def encode(self, sound: Tensor) -> Tensor:
        """Return the codes [batch, codebooks, T] of sound [batch, 1, samples]; the last frame is filled with silence."""
        check_sound(sound)
        per_frame = self.config.samples_per_frame
        samples = nn.functional.pad(sound[:, 0].to(self.device), (0, -sound.shape[2] % per_frame))
        carried = Carried.at_start(self.encoding, streams=len(sound), device=self.device)
        pieces = []
        for block in torch.split(samples, FRAMES_PER_BLOCK * per_frame, dim=1):
            carried = carried.followed_by(block.shape[1] // per_frame)
            pieces.append(self.encode_frames(block, carried))
        return torch.cat(pieces, dim=2)


def check_codes(codes: Tensor, config: CodecConfig) -> None:
    """Raise ValueError unless codes are [batch, codebooks, at least one frame] and none is negative."""
    if codes.ndim != 3 or codes.shape[1] != config.codebooks or codes.shape[2] == 0:
        raise ValueError(
            f"codes must be [batch, {config.codebooks}, frames] with at least one frame, found {list(codes.shape)}"
        )
    if codes.is_floating_point() or int(codes.min()) < 0:
        raise ValueError(f"codes must be integers of at least 0, found {codes.dtype} with minimum {codes.min().item()}")


def check_sound(sound: Tensor) -> None:
    """Raise ValueError unless sound is [batch, 1, at least one sample] and finite."""
    if sound.ndim != 3 or sound.shape[1] != 1 or sound.shape[2] == 0:
        raise ValueError(f"sound must be [batch, 1, samples] with at least one sample, found {list(sound.shape)}")
    if not bool(torch.isfinite(sound).all()):
        raise ValueError("sound must be finite, found NaN or infinity")
