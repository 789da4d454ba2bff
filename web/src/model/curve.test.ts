import { describe, expect, it } from 'vitest';
import document from '../../tests/documents/plan.json';
import type { Plan } from './bindings';
import { curveOf, integerTicks, isWide, words } from './curve';

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
