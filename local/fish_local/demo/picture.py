"""The run as a picture: GPUs by state over time, with the number of listeners above. Pure: snapshots in, SVG out."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from fish_local.demo.board import Snapshot

# One colour a state; the same words as on the live board.
COLOURS: Final = {
    "serving": "#2a9d8f",
    "loading": "#e9c46a",
    "draining": "#8ecae6",
    "fill": "#3a6ea5",
    "checkpointing": "#b56576",
    "free": "#e5e5e5",
    "unhealthy": "#d00000",
    "other": "#999999",
}
_WIDTH, _PLOT_HEIGHT, _CROWD_HEIGHT = 880, 200, 70
_LEFT, _TOP, _BOTTOM = 70, 34, 62


def draw(shots: Sequence[Snapshot], *, title: str) -> str:
    """Return an SVG of the run; it needs at least two snapshots with a GPU in them."""
    seen = [shot for shot in shots if shot.gpus]
    if len(seen) < 2:
        raise ValueError(f"a picture needs two snapshots that show GPUs, found {len(seen)}")
    height = _TOP + _CROWD_HEIGHT + _PLOT_HEIGHT + _BOTTOM
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" font-family="sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="{_LEFT}" y="20" font-size="15" font-weight="bold">{title}</text>',
            *_crowd(seen),
            *_states(seen),
            *_axis(seen),
            *_legend(height - 14),
            "</svg>\n",
        ]
    )


def _x(shot: Snapshot, shots: Sequence[Snapshot]) -> float:
    first_s, last_s = shots[0].elapsed_s, shots[-1].elapsed_s
    return _LEFT + _WIDTH * (shot.elapsed_s - first_s) / (last_s - first_s)


def _crowd(shots: Sequence[Snapshot]) -> Iterator[str]:
    most = max(1, *(shot.listeners for shot in shots))
    floor = _TOP + _CROWD_HEIGHT - 8
    points = " ".join(
        f"{_x(shot, shots):.1f},{floor - (_CROWD_HEIGHT - 20) * shot.listeners / most:.1f}" for shot in shots
    )
    yield f'<text x="4" y="{floor - 20}">listeners</text><text x="{_LEFT - 20}" y="{floor - _CROWD_HEIGHT + 26}">{most}</text>'
    yield f'<polyline points="{points}" fill="none" stroke="#333" stroke-width="2"/>'


def _states(shots: Sequence[Snapshot]) -> Iterator[str]:
    total = max(sum(shot.gpus.values()) for shot in shots)
    top = _TOP + _CROWD_HEIGHT
    for gpu in range(1, total + 1):
        yield f'<text x="30" y="{top + _PLOT_HEIGHT * (gpu - 0.5) / total + 4:.0f}">GPU {gpu}</text>'
    for shot, following in pairwise(shots):
        x, width = _x(shot, shots), _x(following, shots) - _x(shot, shots)
        filled = 0
        for state, colour in COLOURS.items():
            count = shot.gpus.get(state, 0)
            if count:
                y, tall = top + _PLOT_HEIGHT * filled / total, _PLOT_HEIGHT * count / total
                yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{width + 0.3:.1f}" height="{tall:.1f}" fill="{colour}"/>'
            filled += count


def _axis(shots: Sequence[Snapshot]) -> Iterator[str]:
    y = _TOP + _CROWD_HEIGHT + _PLOT_HEIGHT + 16
    first_s, last_s = shots[0].elapsed_s, shots[-1].elapsed_s
    for step in range(6):
        second = (last_s - first_s) * step / 5
        yield f'<text x="{_LEFT + _WIDTH * step / 5 - 8:.0f}" y="{y}" fill="#555">{second:.0f} s</text>'


def _legend(y: int) -> Iterator[str]:
    x = _LEFT
    for state, colour in COLOURS.items():
        yield f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/><text x="{x + 17}" y="{y}">{state}</text>'
        x += 30 + 8 * len(state)
