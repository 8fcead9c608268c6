"""Cleaning of recorded speech: a folder of recordings goes in, shards fit for training come out.

Fill work: it may be stopped at any instant and loses next to nothing. docs/decisions/0006-checkpoints.md says how.
"""
