"""What is read of a plan that is judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rig import speed
from rig.curve import Document


class Trial(Protocol):
    """What was measured of an app: Tenfold's own document, and whatever is held against it."""

    plan: Document
    # The plans before it, which were suspect.
    suspect: list[Document]
    # CPU seconds of a fixed piece of work, before and after each part.
    work_s: list[float]


class JudgedPlan:
    """An app's plan, to be held against the truth."""

    trial: Trial

    @property
    def recommended(self) -> int:
        return int(self.trial.plan["recommendation"]["instances"])

    @property
    def interval(self) -> tuple[int, int]:
        answer = self.trial.plan["recommendation"]
        return answer["low"], answer["high"]

    @property
    def first_finding(self) -> str:
        findings = self.trial.plan["findings"]
        return str(findings[0]["kind"]) if findings else "none"

    @property
    def verdict(self) -> str:
        return str(self.trial.plan["verdict"])

    @property
    def plan_s(self) -> float:
        return float(self.trial.plan["duration_s"])

    @property
    def recommendation(self) -> str:
        """The count, and its interval where that is more than the count."""
        low, high = self.interval
        return str(self.recommended) + ("" if low == high else f" ({low} - {high})")


def disturbances(judged: Sequence[JudgedPlan]) -> list[list[str]]:
    """Rows of a table: how often something else on the machine changed what was measured."""
    again = sum(bool(each.trial.suspect) for each in judged)
    changed = sum(speed.is_changed(each.trial.work_s) for each in judged)
    speeds = f"apps whose cores changed their speed by more than {speed.MOST_CHANGE:.0%} between plan and sweeps"
    return [
        ["apps that were planned again, up to twice, because the plan was suspect", f"{again} of {len(judged)}", "", ""],
        [speeds, f"{changed} of {len(judged)}", "", ""],
    ]
