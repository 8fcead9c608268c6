"""What a request says depends on its text, its parameters and its seed; not on who else is being served."""

from dataclasses import replace

import pytest
import torch

from fish_engine.model.sampling import SamplingParams


@pytest.fixture(scope="module")
def crowd(prompts, line):
    params = [
        SamplingParams(temperature=0.0),
        SamplingParams(temperature=0.7, top_p=0.7, seed=5),
        SamplingParams(temperature=1.0, top_p=0.95, repetition_penalty=1.2, seed=-9),
    ]
    texts = [f"Sentence number {index}{', and more' * (index % 7)}." for index in range(18)]
    return [
        line(prompt=prompts.build(text), sampling=params[index % 3], frame_limit=4 + index // 2)
        for index, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def together(play, crowd):
    return play(crowd).columns


@pytest.mark.parametrize("index", [0, 1, 17])
def test_frames_alone_equal_frames_in_a_crowd(play, crowd, together, index):
    assert torch.equal(play([crowd[index]]).columns[0], together[index])


def test_frames_do_not_depend_on_the_place_in_the_batch(play, crowd, together):
    backwards = play(crowd[::-1]).columns
    assert all(torch.equal(backwards[len(crowd) - 1 - index], frames) for index, frames in together.items())


def test_preempted_requests_resume_without_a_lost_or_doubled_frame(play, crowd):
    long_lines = [replace(line, frame_limit=24) for line in crowd[:3]]
    plenty, tight = play(long_lines), play(long_lines, blocks=9)
    assert plenty.preempted == 0
    assert tight.preempted > 0
    assert all(torch.equal(frames, plenty.columns[index]) for index, frames in tight.columns.items())


def test_another_seed_says_it_another_way(play, prompts, line):
    prompt = prompts.build("Same text.")
    params = [SamplingParams(temperature=1.0, top_p=1.0, seed=seed) for seed in (1, 2, 1)]
    lines = [line(prompt=prompt, sampling=sampling, frame_limit=4) for sampling in params]
    first, second, again = play(lines).columns.values()
    assert torch.equal(first, again)
    assert not torch.equal(first[:3], second[:3])
