"""The tiny golden checkpoint, loaded once, and a way to play the loop without sound."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from fish_engine.batch import Utterance
from fish_engine.codec.dac import Codec
from fish_engine.codec.weights import load_codec
from fish_engine.kv_cache import BlockPool
from fish_engine.loading import BLOCK_SIZE
from fish_engine.model.attention import PagedKeyValues
from fish_engine.model.config import DualARConfig, read_config
from fish_engine.model.dual_ar import DualAR
from fish_engine.model.prompt import PromptBuilder
from fish_engine.model.sampling import SamplingParams
from fish_engine.model.tokenizer import TextTokenizer
from fish_engine.model.weights import load_model
from fish_engine.request import Request
from fish_engine.runner import Runner
from fish_engine.scheduler import Limits, Scheduler

GOLDEN = Path(__file__).parents[2] / "golden"
CPU = torch.device("cpu")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Tests share two cores with each other; tiny products gain nothing from more."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def model_folder() -> Path:
    return GOLDEN / "s2_tiny"


@pytest.fixture(scope="session")
def codec_folder() -> Path:
    return GOLDEN / "codec_tiny"


@pytest.fixture(scope="session")
def config(model_folder: Path) -> DualARConfig:
    return read_config(model_folder / "config.json")


@pytest.fixture(scope="session")
def tokenizer(model_folder: Path, config: DualARConfig) -> TextTokenizer:
    return TextTokenizer(model_folder / "tokenizer.json", config)


@pytest.fixture(scope="session")
def prompts(tokenizer: TextTokenizer, config: DualARConfig) -> PromptBuilder:
    return PromptBuilder(tokenizer, config)


@pytest.fixture(scope="session")
def model(model_folder: Path, config: DualARConfig, tokenizer: TextTokenizer) -> DualAR:
    return load_model(model_folder, config, im_end_id=tokenizer.im_end_id, device=CPU, dtype=torch.float32)


@pytest.fixture(scope="session")
def codec(codec_folder: Path) -> Codec:
    return load_codec(codec_folder)


@pytest.fixture(scope="session")
def golden(model_folder: Path) -> dict[str, Tensor]:
    return load_file(model_folder / "golden.safetensors")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One request to play."""

    prompt: Tensor
    sampling: SamplingParams
    frame_limit: int = 40


@dataclass(frozen=True, kw_only=True)
class Performance:
    """What came of it: every column that was drawn, the end mark included."""

    columns: Mapping[int, Tensor]
    preempted: int


@pytest.fixture(scope="session")
def line() -> type[Line]:
    return Line


@pytest.fixture(scope="session")
def play(model: DualAR) -> Callable[..., Performance]:
    """Return a function that plays lines together to their ends."""

    def perform(lines: Sequence[Line], *, blocks: int = 400, prefill_chunk: int = 256) -> Performance:
        limits = Limits(max_running=64, block_size=BLOCK_SIZE, prefill_chunk=prefill_chunk)
        scheduler = Scheduler(limits=limits, pool=BlockPool(blocks))
        store = PagedKeyValues(model.config.slow, blocks=blocks, block_size=BLOCK_SIZE, dtype=torch.float32, device=CPU)
        runner = Runner(model, store)
        utterances = {
            index: Utterance(prompt=line.prompt, frame_limit=line.frame_limit, sampling=line.sampling)
            for index, line in enumerate(lines)
        }
        for index, line in enumerate(lines):
            scheduler.add(Request(request_id=index, prompt_len=len(line.prompt), frame_limit=line.frame_limit))
        columns: dict[int, list[Tensor]] = {index: [] for index in utterances}
        preempted = 0
        while scheduler.running_count + scheduler.waiting_count:
            plan = scheduler.plan()
            preempted += len(plan.preempted)
            drawn = runner.run(plan, utterances)
            is_end = {index: int(column[0]) == model.im_end_id for index, column in drawn.items()}
            for index, column in drawn.items():
                columns[index].append(column)
                if not is_end[index]:
                    utterances[index].add(column)
            scheduler.commit(plan, is_end)
        assert scheduler.pool.used_count == 0
        return Performance(columns={index: torch.stack(list_) for index, list_ in columns.items()}, preempted=preempted)

    return perform
