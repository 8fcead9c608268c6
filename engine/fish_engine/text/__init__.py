"""What a text says before it is tokens. Knows no model."""
