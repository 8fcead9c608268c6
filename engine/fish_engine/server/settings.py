"""What an operator may set; the only place that reads the environment."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from fish_contracts.reports import HTTP_PORT, METRICS_PORT


class ServeSettings(BaseSettings):
    """Settings of `serve`: each a flag, or an environment variable with the prefix FISH_ENGINE_."""

    model_config = SettingsConfigDict(env_prefix="FISH_ENGINE_")

    checkpoint: Path
    """Folder with config.json, model.safetensors and tokenizer.json."""
    codec: Path | None = None
    """Folder with codec.pth, or that file; the checkpoint's own folder by default."""
    host: str = "127.0.0.1"
    port: int = Field(default=HTTP_PORT, ge=1, le=65535)
    metrics_port: int = Field(default=METRICS_PORT, ge=1, le=65535)
    max_streams: int = Field(default=16, ge=1, le=1024)
    """Streams made at the same time. More of them share each step, which makes every one slower."""
    max_queued: int = Field(default=64, ge=0)
    """Streams that may wait; the next one is told to come back later."""
    device: str = "cpu"
    cpu_threads: int = Field(default=1, ge=1)
    """Threads of one matrix product on the CPU. More than one gains little on small models and costs neighbours a lot."""
    kv_cache_gib: float = Field(default=1.0, gt=0)
    """Memory for keys and values; less is taken where every stream can have its longest context with less."""
    max_text_chars: int = Field(default=20_000, ge=1)
    max_body_mib: int = Field(default=25, ge=1)
    api_keys_file: Path | None = None
    """Keys that clients must bring, one a line."""
    voices: Path | None = None
    """Folder of stored voices and of the codes of recordings; without one they are kept until the process ends."""
