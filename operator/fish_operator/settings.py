"""What the environment says; nothing else in this package reads it."""

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Settings of the operator. The chart sets each of them."""

    model_config = SettingsConfigDict(env_prefix="FISH_", frozen=True)

    pod_ip: str = Field(default="127.0.0.1", validation_alias="POD_IP")
    """Address to serve health and metrics on."""
    engine_image: str = "fish-tts/engine:0.1.0"
    """For a TTSDeployment that names no image."""
    cleaning_image: str = "fish-tts/cleaning:0.1.0"
    """For a CleaningJob that names no image."""
    tick_s: float = Field(default=1.0, ge=0.1, le=10)
    """Time between two rounds when nothing happens."""
    report_timeout_s: float = Field(default=0.7, ge=0.1, le=5)
    """Longest wait for an engine's or worker's report; a late one counts as missing."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
