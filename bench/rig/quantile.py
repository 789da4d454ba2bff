"""Quantiles of what was measured."""

from __future__ import annotations

import math


def nearest(ordered: list[float], share: float) -> float:
    """The nearest rank, as histograms count."""
    return ordered[math.ceil(share * len(ordered)) - 1]
