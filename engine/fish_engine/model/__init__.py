"""The DualAR model: configuration, layers, weights, prompts and sampling. Knows nothing of requests or servers."""
