"""A measurement that is made again while something disturbs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

MOST_AGAIN = 2


def undisturbed(measure: Callable[[], T], is_disturbed: Callable[[T], bool]) -> tuple[T, list[T]]:
    """The first result that nothing disturbed, or else the last one, and those before it."""
    disturbed: list[T] = []
    while is_disturbed(result := measure()) and len(disturbed) < MOST_AGAIN:
        disturbed.append(result)
    return result, disturbed
