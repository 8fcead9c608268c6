"""The frame step on a GPU: fixed buffers, compiled pieces, one CUDA graph for each size of batch, and no waiting inside a step."""
