"""What is read of a plan that is judged."""

from __future__ import annotations

from typing import Protocol

from rig.curve import Document


class Trial(Protocol):
    """What was measured of an app: Tenfold's own document, and whatever is held against it."""

    plan: Document


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
