"""Values of two contestants compared round by round."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Ratio:
    """Of one to another, of the same rounds."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        # A fiftieth and a hundredth are worth telling apart.
        digits = 2 if self.median >= 0.1 else 4
        low, high = f"{self.low:.{digits}f}", f"{self.high:.{digits}f}"
        return f"{self.median:.{digits}f}, {low} - {high}"


def ratio(ours: list[float], theirs: list[float]) -> Ratio:
    each = [our / their for our, their in zip(ours, theirs, strict=True)]
    return Ratio(median(each), min(each), max(each))


def middle(values: list[float | None]) -> float | None:
    """The median of those that there are."""
    present = [value for value in values if value is not None]
    return median(present) if present else None


def verdict(met: bool) -> str:
    return "met" if met else "missed"
