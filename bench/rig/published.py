"""Published systems: what the tables say of a row and of a plan, beside what was published."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from rig.table import milliseconds

DIFFERENT = "different"

Document = dict[str, Any]


def multiple(document: Document, first: Document) -> float:
    """Nothing of nothing, where not one answer came."""
    return float(document["throughput"] / first["throughput"]) if first["throughput"] else 0.0


def conclusion(least: float, measured: float, predicted: float | None, most: float) -> str:
    if not least <= measured <= most:
        return f"{DIFFERENT}: measured"
    if predicted is not None and not least <= predicted <= most:
        return f"{DIFFERENT}: predicted"
    return "same"


def answer(
    plan: Document, finding: str, least: int, most: int, beside: Container[str] = ()
) -> tuple[str, str]:
    """What it recommends and why, and whether that was wanted. The findings `beside` may come first."""
    recommended, kinds = plan["recommendation"], [each["kind"] for each in plan["findings"]]
    count = recommended["instances"] if recommended else 0
    first = next((kind for kind in kinds if kind not in beside), None)
    is_same = least <= count <= most and first == finding
    said = f"{count} x, {', '.join(kinds) or 'no finding'}" if recommended else "no answer"
    return said, "same" if is_same else f"{DIFFERENT}: {finding} and {least} - {most}"


def figures(throughput: float, times: Document) -> str:
    p50, p95 = milliseconds(times["p50"]), milliseconds(times["p95"])
    rate = f"{throughput:.2f}" if throughput < 10 else f"{throughput:.0f}"
    return f"{rate}/s" if p50 == p95 == "-" else f"{rate}/s, {p50} and {p95} ms"


def of_workload(workload: tuple[str, ...]) -> str:
    values = dict(zip(workload[::2], workload[1::2], strict=True))
    if "--rate" in values:
        return f"{values['--rate']} requests/s"
    think = values["--think"]
    count = values["--users"]
    many = f"{count} user" if count == "1" else f"{count} users"
    return many if think == "0s" else f"{many}, {think} apart"
