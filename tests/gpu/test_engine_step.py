"""The frame step on a real GPU, compiled and recorded, against the same step uncompiled and against the codec in float32."""

import pytest
import torch

from fish_engine.batch import Utterance
from fish_engine.codec.carried import Carried
from fish_engine.codec.config import CodecConfig
from fish_engine.gpu.attention import GatheredMask, PagedMask
from fish_engine.gpu.graphs import compiled, compiled_for_all_sizes
from fish_engine.gpu.loading import PADDING_PAGES, PAGE_SIZE, graph_runner
from fish_engine.gpu.vocoder import Vocoder
from fish_engine.kv_cache import BlockPool
from fish_engine.model.attention import PagedKeyValues
from fish_engine.model.config import DualARConfig, TransformerConfig
from fish_engine.model.sampling import SamplingParams
from fish_engine.random_weights import random_codec, random_model
from fish_engine.request import Request
from fish_engine.scheduler import Limits, Scheduler

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]
CUDA = torch.device("cuda")
STACK = {
    "heads": 8,
    "kv_heads": 2,
    "head_dim": 128,
    "dim": 512,
    "intermediate_dim": 1024,
    "rope_base": 1e6,
    "norm_eps": 1e-6,
}
SMALL = DualARConfig(
    slow=TransformerConfig(layers=4, max_positions=1024, has_qk_norm=True, **STACK),
    fast=TransformerConfig(layers=2, max_positions=11, has_qk_norm=False, **STACK),
    vocab_size=4096,
    codebook_count=10,
    codebook_size=1024,
    semantic_begin_id=3000,
    semantic_end_id=4023,
)


def test_attention_over_pages_is_attention_over_a_copy_of_them():
    torch.manual_seed(1)
    rows, pages, width = 5, 40, 6
    keys = torch.randn(pages * PAGE_SIZE, 8, 128, device=CUDA, dtype=torch.bfloat16)
    values = torch.randn_like(keys)
    tables = torch.randperm(pages, device=CUDA)[: rows * width].view(rows, width)
    positions = torch.tensor([0, 63, 64, 200, 383], device=CUDA)
    unread = torch.ones(pages * PAGE_SIZE, dtype=torch.bool, device=CUDA)
    for row, position in enumerate(positions.tolist()):
        places = torch.arange(position + 1, device=CUDA)
        unread[tables[row, places // PAGE_SIZE] * PAGE_SIZE + places % PAGE_SIZE] = False
    keys[unread] = 1e4  # seen by mistake, it would take all the weight
    q = torch.randn(rows, 32, 128, device=CUDA, dtype=torch.bfloat16)
    paged = PagedMask(rows=rows, pages=pages, page_size=PAGE_SIZE, table_width=width, device=CUDA)
    gathered = GatheredMask(page_size=PAGE_SIZE)
    for mask in (paged, gathered):
        mask.update(positions, tables)
    found = compiled(paged.attend)(q, keys, values)
    expected = gathered.attend(q.float(), keys.float(), values.float())
    assert ((found.float() - expected).norm() / expected.norm()).item() < 1e-2  # bf16 operands


@pytest.fixture(scope="module")
def play():
    """Return a function that lets requests of one model say frames together, all of them in one bucket."""
    torch.manual_seed(2)
    model = random_model(SMALL, im_end_id=0, device=CUDA, dtype=torch.bfloat16)
    store = PagedKeyValues(
        SMALL.slow, blocks=256 + PADDING_PAGES, block_size=PAGE_SIZE, dtype=torch.bfloat16, device=CUDA
    )
    runner = graph_runner(model, store, max_positions=512, buckets=(8,))

    def perform(utterances):
        scheduler = Scheduler(limits=Limits(max_running=8, block_size=PAGE_SIZE), pool=BlockPool(256))
        for index, utterance in utterances.items():
            prompt_len, limit = len(utterance.prompt), utterance.frame_limit
            scheduler.add(Request(request_id=index, prompt_len=prompt_len, frame_limit=limit))
        while scheduler.running_count + scheduler.waiting_count:
            plan = scheduler.plan()
            columns = runner.launch(plan, utterances).columns()
            for index, column in columns.items():
                utterances[index].add(column)
            scheduler.commit(plan, dict.fromkeys(columns, False))
        return {index: utterance.columns[len(utterance.prompt) :].clone() for index, utterance in utterances.items()}

    return perform


def utterance(index, sampling):
    generator = torch.Generator().manual_seed(index)
    prompt = torch.zeros(40 + 17 * index, SMALL.column_rows, dtype=torch.int64)
    prompt[:, 0] = torch.randint(1, 3000, (len(prompt),), generator=generator)
    return Utterance(prompt=prompt, frame_limit=60, sampling=sampling)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_request_makes_the_same_frames_alone_and_among_others_of_its_bucket(play, temperature):
    def lines(indices):
        return {index: utterance(index, SamplingParams(temperature=temperature, seed=index)) for index in indices}

    together = play(lines(range(8)))
    for index in (0, 5):
        assert torch.equal(play(lines([index]))[index], together[index])


def test_the_vocoder_is_the_codec_up_to_bfloat16():
    torch.manual_seed(3)
    codec = random_codec(CodecConfig(), device=CUDA)
    vocoder = Vocoder(codec, dtype=torch.bfloat16, compiler=compiled_for_all_sizes)
    codes = torch.randint(0, 1024, (2, 10, 24), device=CUDA)
    expected = codec.decode(codes)[:, 0]
    carried = Carried.at_start(codec.decoding, streams=2, device=CUDA)
    pieces = []
    for chunk in torch.split(codes, (1, 2, 5, 16), dim=2):
        carried = carried.followed_by(chunk.shape[2])
        pieces.append(vocoder.decode_frames(chunk, carried))
    error = torch.cat(pieces, dim=1) - expected
    assert (error.norm() / expected.norm()).item() < 0.15  # random weights amplify rounding; measured 0.10
