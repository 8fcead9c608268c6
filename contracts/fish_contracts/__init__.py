"""What all rooms agree on: the rule, and the words that cross the wire.

Standard library only, no I/O. A thing enters here only when two rooms need it.
"""
