"""Sound outside the codec: files and bytes."""
