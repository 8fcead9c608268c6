"""`python -m fish_kernels.bench [--json] [--tokens 1,8] [--sections gemm,chain,mlp,small]`."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import torch

from fish_kernels.bench import sections
from fish_kernels.bench.operands import make_weights
from fish_kernels.bench.peers import Gemm, working_peers
from fish_kernels.bench.shapes import LAYER, TOKENS

SECTIONS = ("gemm", "chain", "mlp", "small")


def _sm_clock_mhz() -> int | None:
    try:
        return torch.cuda.clock_rate()
    except (ModuleNotFoundError, RuntimeError):  # PyTorch asks NVML, whose Python package may be missing
        return None


def _environment(missing_peers: dict[str, str]) -> dict[str, object]:
    versions: dict[str, str | None] = {"torch": torch.__version__, "cuda": torch.version.cuda}
    for package in ("sgl-deep-gemm", "flashinfer-python", "apache-tvm-ffi", "triton"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    device = torch.cuda.get_device_properties(0)
    return {
        "gpu": device.name,
        "multiprocessors": device.multi_processor_count,
        "sm_clock_mhz": _sm_clock_mhz(),
        "versions": versions,
        "missing_peers": missing_peers,
    }


def _rows(
    names: list[str], tokens: list[int], replays: int, peers: dict[str, Gemm], device: torch.device
) -> Iterator[sections.Row]:
    weights = [make_weights(shape, device) for shape in LAYER] if set(names) - {"small"} else []
    by_name = sections.weights_by_name(weights)
    for count in tokens:
        if "gemm" in names:
            for entry in weights:
                yield from sections.gemms(entry, count, peers, replays)
        if "chain" in names:
            yield from sections.chain(by_name, count, peers, replays)
        if "mlp" in names:
            yield from sections.mlp(by_name, count, peers, replays)
        if "small" in names:
            yield from sections.small_kernels(count, replays, device)


def _line(row: sections.Row) -> str:
    verdict = {None: "", True: f"  bar {row.bar_us} met", False: f"  bar {row.bar_us} MISSED"}[row.meets_bar]
    rate = "" if row.gigabytes_per_s is None else f"{row.gigabytes_per_s:6.0f} GB/s"
    error = "" if row.relative_error is None else f"  error {row.relative_error:.1e}"
    return f"{row.section:6} {row.shape:8} {row.tokens:4} {row.arm:18} {row.us:8.2f} us {rate}{error}{verdict}"


def main() -> int:
    """Print the table, or JSON; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m fish_kernels.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    parser.add_argument("--tokens", default=",".join(map(str, TOKENS)), help="comma-separated batch sizes")
    parser.add_argument("--sections", default=",".join(SECTIONS), help=f"which of {', '.join(SECTIONS)}")
    parser.add_argument("--replays", type=int, default=50, help="replays of each graph; the median is reported")
    options = parser.parse_args()
    names = options.sections.split(",")
    if unknown := sorted(set(names) - set(SECTIONS)):
        parser.error(f"--sections: expected some of {', '.join(SECTIONS)}, found {', '.join(unknown)}")
    if not torch.cuda.is_available():
        print("the benchmark needs an NVIDIA GPU, and PyTorch finds none", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    device = torch.device("cuda", 0)
    peers, missing = working_peers(device)
    rows = []
    for row in _rows(names, [int(count) for count in options.tokens.split(",")], options.replays, peers, device):
        rows.append(row)
        if not options.json:
            print(_line(row), flush=True)
    if options.json:
        document = {
            "environment": _environment(missing),  # after the work, so that the clock is the one under load
            "rows": [dataclasses.asdict(row) | {"meets_bar": row.meets_bar} for row in rows],
        }
        print(json.dumps(document, indent=1))
    return int(any(row.meets_bar is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
