"""The engine: text in, speech out, many requests in one batch."""
