"""A setting comes from a flag, else from the environment, else from its default."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from fish_engine.server.settings import ServeSettings


def test_the_environment_is_read_and_a_flag_wins(monkeypatch):
    monkeypatch.setenv("FISH_ENGINE_CHECKPOINT", "/from/environment")
    monkeypatch.setenv("FISH_ENGINE_MAX_STREAMS", "3")
    monkeypatch.setenv("FISH_ENGINE_KV_CACHE_GIB", "0.5")
    settings = ServeSettings(max_streams=5)
    assert settings.checkpoint == Path("/from/environment")
    assert settings.kv_cache_gib == 0.5
    assert settings.max_streams == 5
    assert (settings.host, settings.port, settings.metrics_port) == ("127.0.0.1", 8080, 9090)


@pytest.mark.parametrize(("name", "value"), [("PORT", "70000"), ("MAX_STREAMS", "none"), ("KV_CACHE_GIB", "0")])
def test_a_value_that_cannot_be_is_refused_by_name(monkeypatch, name, value):
    monkeypatch.setenv("FISH_ENGINE_CHECKPOINT", "/x")
    monkeypatch.setenv(f"FISH_ENGINE_{name}", value)
    with pytest.raises(ValidationError, match=name.lower()):
        ServeSettings()
