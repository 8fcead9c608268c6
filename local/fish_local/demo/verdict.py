"""What `python -m fish_cleaning verify --json` says of an output."""

from pydantic import BaseModel, ConfigDict


class Verdict(BaseModel):
    """Items of the input and where they are; the counts that the report repeats."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    items_expected: int
    items_committed: int
    items_rejected: int
    items_lost: int
    items_doubled: int
    work_redone_ratio: float
