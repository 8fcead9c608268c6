"""The benchmark's way, tried out on a CPU with the sizes of the tiny checkpoint; its figures mean nothing here."""

import json

import pytest
import torch
from typer.testing import CliRunner

from fish_contracts.exit_codes import ExitCode
from fish_engine.__main__ import app
from fish_engine.bench import Bench, Shape, parsed_concurrency, report
from fish_engine.codec.config import read_codec_config
from fish_engine.errors import EngineError
from fish_engine.random_weights import S2, S2_IM_END_ID, random_model

CPU = torch.device("cpu")


def test_the_true_shape_has_the_published_number_of_parameters():
    with torch.device("meta"):
        model = random_model(S2, im_end_id=S2_IM_END_ID, device=torch.device("meta"), dtype=torch.bfloat16)
    assert sum(parameter.numel() for parameter in model.parameters()) == 4_561_852_416


def test_every_number_of_streams_is_measured_with_and_without_sound(config, codec_folder, tokenizer):
    shape = Shape(
        model=config,
        im_end_id=tokenizer.im_end_id,
        codec=read_codec_config(codec_folder),
        prompt_positions=20,
        warm_up_steps=4,
        window_steps=8,
        windows=2,
    )
    bench = Bench(shape, concurrency=(1, 3), device=CPU)
    results = [bench.measure(1), bench.measure(3)]
    for result in results:
        for rates in (result.frames_per_s, result.frames_to_pcm_per_s):
            assert len(rates.windows) == 2
            assert min(rates.windows) > 0
    told = json.loads(json.dumps(report(results, shape, CPU)))
    assert [entry["concurrency"] for entry in told["results"]] == [1, 3]


@pytest.mark.parametrize("text", ["", "1,,2", "sixteen", "0", "65"])
def test_a_concurrency_that_cannot_be_is_named(text):
    with pytest.raises(EngineError, match="expected numbers"):
        parsed_concurrency(text)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--random-weights", "--device", "cuda:99"], "cuda:99"),
        (["--random-weights", "--device", "cpu"], "expected a CUDA device"),
        (["--random-weights", "--device", "cuda", "--concurrency", "0"], "concurrency '0'"),
        (["--device", "cpu"], "--random-weights"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_name(arguments, named):
    result = CliRunner().invoke(app, ["bench", *arguments])
    assert result.exit_code == ExitCode.USAGE
    assert named in result.output
