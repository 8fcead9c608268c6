"""The engine over HTTP, as Fish Audio clients speak it."""
