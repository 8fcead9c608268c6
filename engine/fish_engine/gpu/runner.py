"""Runs step plans on a GPU, one step ahead of whoever reads the frames.

Known columns but the last are stored by a plain prefill; the last one of a prompt goes through the frame step like every
other newest column. So a step is: prefills, one upload, one graph for each batch of rows, one copy back that nobody waits for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from fish_engine.batch import Utterance
from fish_engine.gpu.step import FrameStep, RequestState
from fish_engine.gpu.transfer import Arrival, downloading, uploaded
from fish_engine.model.attention import PagedKeyValues, PrefillMemory
from fish_engine.model.dual_ar import DualAR
from fish_engine.model.sampling import NO_TOKEN, RAS_WINDOW, SamplingParams
from fish_engine.scheduler import Extension, StepPlan

BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64)
_PADDING: Final = SamplingParams(temperature=0.0)


def buckets_for(streams: int) -> tuple[int, ...]:
    """Return the sizes of batch that so many streams can need; more than the largest are several batches."""
    return tuple(size for size in BUCKETS if size < 2 * streams)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """A frame step and what runs it: itself, or a graph of it."""

    step: FrameStep
    run: Callable[[], None]


class Landing:
    """Frames on their way to the host."""

    def __init__(self, request_ids: Sequence[int], copies: Sequence[Tensor], device: torch.device) -> None:
        """Take copies [rows, 1 + codebooks] under way, whose rows together are those of the requests in order."""
        self._request_ids = request_ids
        self._copies = copies
        self._arrival = Arrival(device)

    def columns(self) -> dict[int, Tensor]:
        """Return the new column [1 + codebooks] of each request that drew a frame; wait for it if need be."""
        self._arrival.wait()
        rows = [row for part in self._copies for row in part.unbind(0)]
        return dict(zip(self._request_ids, rows, strict=True))


class GraphRunner:
    """Holds the model, the pages, and a step for each size of batch."""

    lookahead: Final = 1
    """Steps that may be launched before the frames of an earlier one are read."""

    def __init__(
        self, model: DualAR, store: PagedKeyValues, state: RequestState, steps: Mapping[int, RecordedStep]
    ) -> None:
        """Take steps by their number of rows; the last page of `store` is for padding."""
        self.model = model
        self._store = store
        self._state = state
        self._steps = dict(sorted(steps.items()))
        self._largest = max(steps)
        self._padding_page = store.keys.shape[1] - 1

    @torch.no_grad()
    def launch(self, plan: StepPlan, utterances: Mapping[int, Utterance]) -> Landing:
        """Give the device all work of a plan and return what will bring the new columns."""
        for extension in plan.prefills:
            self._prefill(extension, utterances[extension.request_id])
        drawing = [item for item in (*plan.prefills, *plan.decodes) if item.draws_frame]
        groups = [drawing[start : start + self._largest] for start in range(0, len(drawing), self._largest)]
        copies = [self._draw(group, [utterances[item.request_id] for item in group]) for group in groups]
        return Landing([item.request_id for item in drawing], copies, self.model.device)

    def _prefill(self, extension: Extension, utterance: Utterance) -> None:
        """Store the known columns but the newest, and put that in the request's home for the step that draws."""
        device, end = self.model.device, extension.start + extension.length
        home = extension.blocks[0]
        newest = len(utterance.prompt) + utterance.frames_made - 1
        ids = utterance.recent_ids() - self.model.config.semantic_begin_id
        recent = F.pad(ids, (RAS_WINDOW - len(ids), 0), value=NO_TOKEN)
        self._state.columns[home] = uploaded(utterance.columns[newest], device)
        self._state.recent[home] = uploaded(recent, device)
        stored = slice(extension.start, min(end, newest))
        if stored.start == stored.stop:
            return
        memory = PrefillMemory(
            self._store,
            blocks=uploaded(torch.tensor(extension.blocks), device),
            start=stored.start,
            length=stored.stop - stored.start,
        )
        positions = torch.arange(stored.start, stored.stop, device=device)
        self.model.slow_hidden(uploaded(utterance.columns[stored], device), positions, memory)

    def _draw(self, extensions: Sequence[Extension], utterances: Sequence[Utterance]) -> Tensor:
        """Return what will be a copy of the new columns [requests, 1 + codebooks]; the next group may use the same buffers."""
        rows = next(size for size in self._steps if size >= len(extensions))
        recorded = self._steps[rows]
        numbers = [_numbers(*pair) for pair in zip(extensions, utterances, strict=True)]
        width = max(len(row) for row in numbers)
        padding_row = [0, 0, 0, self._padding_page, self._padding_page]
        table = [row + [0] * (width - len(row)) for row in numbers + [padding_row] * (rows - len(numbers))]
        params = [utterance.sampling for utterance in utterances] + [_PADDING] * (rows - len(utterances))
        parameters = [(param.temperature, param.top_p, param.repetition_penalty) for param in params]
        recorded.step.numbers[:, :width].copy_(uploaded(torch.tensor(table), self.model.device))
        recorded.step.parameters.copy_(uploaded(torch.tensor(parameters), self.model.device))
        recorded.run()
        return downloading(recorded.step.columns[: len(extensions)])


def _numbers(extension: Extension, utterance: Utterance) -> list[int]:
    """Return a row of `FrameStep.numbers`: position, frame, seed, home and pages."""
    position = extension.start + extension.length - 1
    frame = position + 1 - len(utterance.prompt)
    return [position, frame, utterance.sampling.seed, extension.blocks[0], *extension.blocks]
