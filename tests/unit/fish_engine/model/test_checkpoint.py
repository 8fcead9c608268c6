"""A checkpoint loads in every published form, or is refused with the name of what is wrong."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from fish_engine.errors import BadCheckpoint
from fish_engine.model.config import read_config
from fish_engine.model.weights import load_model

CPU = torch.device("cpu")


@pytest.fixture
def folder(tmp_path, model_folder):
    """A copy that a test may spoil."""
    for name in ("config.json", "model.safetensors"):
        shutil.copy(model_folder / name, tmp_path / name)
    return tmp_path


def load(folder):
    return load_model(folder, read_config(folder / "config.json"), im_end_id=343, device=CPU, dtype=torch.float32)


def edit_config(folder, **changes):
    raw = json.loads((folder / "config.json").read_text())
    for path, value in changes.items():
        *sections, key = path.split("__")
        target = raw
        for section in sections:
            target = target[section]
        if value is None:
            del target[key]
        else:
            target[key] = value
    (folder / "config.json").write_text(json.dumps(raw))


def test_shards_named_by_an_index_load_like_one_file(folder):
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    shards = {"a.safetensors": names[:20], "b.safetensors": names[20:]}
    for shard, held in shards.items():
        save_file({name: tensors[name] for name in held}, folder / shard)
    weight_map = {name: shard for shard, held in shards.items() for name in held}
    whole = load(folder)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    for (name, a), (_, b) in zip(whole.named_parameters(), load(folder).named_parameters(), strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (
            lambda t: t.pop("audio_decoder.project_in.bias"),
            r"audio_decoder\.project_in\.bias is missing, expected shape \[96\]",
        ),
        (
            lambda t: t.update({"text_model.model.norm.weight": torch.ones(3)}),
            r"text_model\.model\.norm\.weight has shape \[3\], expected \[128\]",
        ),
        (lambda t: t.update({"extra.weight": torch.ones(3)}), r"extra\.weight is in no model of this config"),
    ],
)
def test_tensors_that_do_not_fit_are_named(folder, spoil, complaint):
    tensors = load_file(folder / "model.safetensors")
    spoil(tensors)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(BadCheckpoint, match=complaint):
        load(folder)


def test_many_faults_are_counted_and_the_first_ones_named(folder):
    save_file({"x": torch.ones(1)}, folder / "model.safetensors")
    with pytest.raises(BadCheckpoint, match=r"and \d+ more"):
        load(folder)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (
            lambda f: (f / "model.safetensors").unlink(),
            "has no weights: expected model.safetensors or model.safetensors.index.json",
        ),
        (lambda f: (f / "model.safetensors").write_bytes(b"\0" * 10), "is not a whole safetensors file"),
        (lambda f: (f / "model.safetensors.index.json").write_text("[]"), "expected an object with weight_map"),
        (
            lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"x": "gone.safetensors"}}'),
            r"gone\.safetensors does not exist",
        ),
        (lambda f: (f / "config.json").write_text("{"), r"config\.json is not JSON"),
        (lambda f: (f / "config.json").unlink(), r"config\.json does not exist"),
    ],
)
def test_files_that_cannot_be_read_are_named(folder, spoil, complaint):
    spoil(folder)
    with pytest.raises(BadCheckpoint, match=complaint):
        load(folder)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"model_type": "llama"}, "model_type is 'llama', expected 'fish_qwen3_omni'"),
        ({"text_config__n_head": None}, r"text_config\.n_head is None, expected a positive integer"),
        ({"text_config__n_head": 3}, "n_head 3 must be a multiple of n_local_heads 2"),
        ({"text_config__head_dim": 31}, "head_dim 31 must be even"),
        ({"semantic_end_token_id": 400}, r"356\.\.400 are 45, but codebook 0 has 128 entries"),
        ({"text_config__vocab_size": 400}, "semantic_end_token_id 483 must be below vocab_size 400"),
        ({"audio_decoder_config__attention_qkv_bias": True}, "attention_qkv_bias is true, expected false"),
        ({"text_config__tie_word_embeddings": False}, "tie_word_embeddings is false, expected true"),
        ({"text_config__rope_base": -1}, r"rope_base is -1, expected a positive number"),
        ({"text_config__attention_qk_norm": "yes"}, r"attention_qk_norm is 'yes', expected true or false"),
        ({"audio_decoder_config": 3}, r"audio_decoder_config: expected an object, found int"),
    ],
)
def test_sizes_that_cannot_be_are_refused_by_key(folder, changes, complaint):
    edit_config(folder, **changes)
    with pytest.raises(BadCheckpoint, match=complaint):
        read_config(folder / "config.json")


def test_the_fast_stack_has_no_query_norm_unless_it_says_so(folder):
    edit_config(folder, audio_decoder_config__attention_qk_norm=None)
    config = read_config(folder / "config.json")
    assert config.slow.has_qk_norm
    assert not config.fast.has_qk_norm
