import { describe, expect, it } from 'vitest';
import document from '../../tests/documents/plan.json';
import type { Plan } from './bindings';
import { curveOf, decisive, integerTicks, isWide, words } from './curve';

// A document that the program wrote has the types that the program declares.
const plan = document as unknown as Plan;

describe('the curve of a plan', () => {
  it('keeps a p95 that grows without end absent', () => {
    const curve = curveOf(plan);
    const first = curve.predicted[0];
    expect(first?.instances).toBe(1);
    expect(first?.p95).toBeNull();
    expect(curve.predicted.length).toBe(plan.curve.length);
  });

  it('draws probes of the goal with their verdicts', () => {
    const curve = curveOf(plan);
    const goals = plan.probes.filter((probe) => probe.purpose === 'goal');
    expect(curve.measured.map((m) => [m.instances, m.verdict])).toEqual(
      goals.map((probe) => [probe.instances, probe.verdict]),
    );
    expect(curve.measuredTo).toBe(Math.max(...goals.map((probe) => probe.instances)));
  });

  it('draws what the curve says was measured where probes are not kept', () => {
    const curve = curveOf({ ...plan, probes: [] });
    expect(curve.measured.map((m) => m.instances)).toEqual(
      plan.curve.filter((point) => point.measured).map((point) => point.instances),
    );
  });

  it('draws a measurement on the side of the goal that it was judged to be on', () => {
    const [probe] = plan.probes.filter(({ purpose }) => purpose === 'goal');
    const r = plan.recommendation;
    if (!probe || !r) throw new Error('the document has an answer');
    const at = (instances: number, throughput: number, p95: number) => ({
      ...probe,
      instances,
      throughput,
      offered: 115,
      latency_ms: { ...probe.latency_ms, p95 },
    });
    const curve = curveOf({
      ...plan,
      goal: { ...plan.goal, rate: 120, p95_ms: 100 },
      probes: [at(3, 90, 500), at(2, 114, 180), at(4, 113, 70), at(4, 114, 60)],
      recommendation: { ...r, instances: 4, low: 1, high: 4 },
    });
    // By chance 115 were sent: all of them are the goal's 120, and 90 are not.
    expect(curve.measured.map(({ completed }) => Math.round(completed))).toEqual([94, 120, 120, 120]);
    expect(decisive(curve.measured).map(({ instances, p95 }) => [instances, p95])).toEqual([
      [3, 500],
      [2, 180],
      [4, 60],
    ]);
    expect(curve.recommended).toEqual({ instances: 4, low: 4, high: 4 });
  });

  it('names the next limit', () => {
    if (!plan.recommendation) throw new Error('the document has an answer');
    const next = { kind: 'cpu_bound' as const, at_instances: 104 };
    const curve = curveOf({ ...plan, recommendation: { ...plan.recommendation, next_limit: next } });
    expect(curve.limits).toEqual([{ at: 104, word: 'CPU bound' }]);
    expect(words('shared_dependency')).toBe('shared dependency');
  });
});

describe('axes', () => {
  it('have whole counts, as many as there is room for', () => {
    expect(integerTicks(1, 10, 20)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(integerTicks(1, 10, 6)).toEqual([1, 2, 4, 6, 8, 10]);
    expect(integerTicks(1, 1000, 5)).toEqual([1, 200, 400, 600, 800, 1000]);
  });

  it('are logarithmic only where times differ by more than 20 times', () => {
    expect([isWide([10, 200]), isWide([10, 201]), isWide([0, 5]), isWide([])]).toEqual([
      false,
      true,
      false,
      false,
    ]);
  });
});
