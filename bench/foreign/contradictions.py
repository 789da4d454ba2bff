"""Where a plan contradicts itself: sentences of its own document that cannot both be so."""

from __future__ import annotations

from collections.abc import Iterator

from rig.curve import Document, is_within


def of(plan: Document) -> list[str]:
    """A sentence each; none of a plan that agrees with itself."""
    return [*_reasons(plan), *_counts(plan), *_goal(plan)]


def _reasons(plan: Document) -> Iterator[str]:
    answer = plan["recommendation"]
    kinds = [finding["kind"] for finding in plan["findings"]]
    if answer["limited_by"] and answer["limited_by"] not in kinds:
        yield f"limited by {answer['limited_by']}, which is none of its findings ({', '.join(kinds) or 'none'})"
    if not answer["goal_met"] and "headroom" in kinds:
        yield "the goal is not met, though nothing is found to limit"
    if not answer["low"] <= answer["instances"] <= answer["high"]:
        yield f"{answer['instances']} instances, which is not from {answer['low']} to {answer['high']}"


def _counts(plan: Document) -> Iterator[str]:
    """Only what stands as valid claims to be within its intervals."""
    if plan["verdict"] != "valid":
        return
    for point in plan["curve"]:
        measured, predicted = point["measured"], point["predicted"]
        if not measured:
            continue
        low, value, high = predicted["low"], measured["throughput"], predicted["high"]
        if not is_within(low, value, high):
            yield f"valid, and {value:.1f}/s measured at {point['instances']}, outside of {low:.1f} - {high:.1f}"
        low_ms, value_ms, high_ms = predicted["p95_low_ms"], measured["p95_ms"], predicted["p95_high_ms"]
        if predicted["p95_ms"] and low_ms and high_ms and value_ms and not is_within(low_ms, value_ms, high_ms):
            yield (
                f"valid, and a p95 of {value_ms:.3g} ms measured at {point['instances']}, "
                f"outside of {low_ms:.3g} - {high_ms:.3g}"
            )


def _goal(plan: Document) -> Iterator[str]:
    """Of the recommended count: what was measured there decides whether the goal is met."""
    answer, bound_ms = plan["recommendation"], plan["goal"]["p95_ms"]
    measured = {point["instances"]: point["measured"] for point in plan["curve"]}.get(answer["instances"])
    if plan["verdict"] != "valid" or not measured or not bound_ms or measured["p95_ms"] is None:
        return
    if answer["goal_met"] and measured["p95_ms"] > bound_ms:
        yield f"the goal is met, with a p95 of {measured['p95_ms']:.3g} ms measured beside a goal of {bound_ms:g}"
