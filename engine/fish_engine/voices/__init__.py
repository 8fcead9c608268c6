"""Voices to speak with: recordings, and the codes that the model takes for them."""
