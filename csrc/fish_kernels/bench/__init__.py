"""Measures the kernels against their bars and peers: `python -m fish_kernels.bench --json`. See csrc/notes/protocol.md."""
