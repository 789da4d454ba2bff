"""Rounds: every contestant in turn, in an order that changes, again if others disturbed it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

# A round is measured again so often if others used the machine meanwhile.
REPEATS = 2


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Disturbable(Protocol):
    @property
    def disturbed(self) -> bool: ...


Contestant = TypeVar("Contestant", bound=Named)
Value = TypeVar("Value", bound=Disturbable)


@dataclass
class Spare:
    """The time that all repeated rounds of the benchmark may take together."""

    seconds: float


class Alternation:
    def __init__(self, count: int, seed: int, spare: Spare) -> None:
        self._count = count
        self._random = random.Random(seed)
        self._spare = spare

    def run(
        self,
        contestants: Sequence[Contestant],
        measure: Callable[[Contestant], Value],
        repeats: int = 1,
    ) -> dict[str, list[Value]]:
        """By name, a value a round; the n-th values of all are of the same round."""
        results: dict[str, list[Value]] = {each.name: [] for each in contestants}
        for _ in range(self._count * repeats):
            for each in self._random.sample(contestants, len(contestants)):
                results[each.name].append(self._undisturbed(partial(measure, each)))
        return results

    def _undisturbed(self, measure: Callable[[], Value]) -> Value:
        """The first value that nobody disturbed, or the last one, which says so."""
        value = measure()
        for _ in range(REPEATS):
            if not value.disturbed or self._spare.seconds <= 0:
                break
            began = time.monotonic()
            value = measure()
            self._spare.seconds -= time.monotonic() - began
        return value
