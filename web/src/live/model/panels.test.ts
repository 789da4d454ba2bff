import { expect, test } from 'vitest';
import type { LiveLoad, SeriesName } from '../../model/bindings';
import { livePanels, runSpan } from './panels';

const NAMES: SeriesName[] = ['cpu_app', 'cpu_balancer', 'cpu_generator', 'cpu_other', 'cpu_dependencies'];
const TIMELINE = {
  series: NAMES.map((name) => ({ name, index: null, unit: 'cores' as const, per: 1000 })),
  at: [1, 2],
  columns: [
    [0.5, 0.6],
    [0.1, 0.1],
    [null, 0.2],
    [0, 0.3],
    [0, 0],
  ],
  ends: NAMES.map(() => ({ least: [], most: [] })),
};

test('the CPU of all parts stands against the cores, without parts that used none', () => {
  const [cpu, ...others] = livePanels(TIMELINE, [], 2);
  expect(others).toEqual([]);
  expect(cpu?.lines.map(({ name }) => name)).toEqual(['app', 'balancer', 'generator', 'others']);
  expect(cpu?.capacity).toEqual({ value: 2, words: '2 cores' });
  expect(livePanels(TIMELINE, [], 1)[0]?.capacity?.words).toBe('1 core');
});

test('the charts may show this run alone', () => {
  const at = [100, 110, 120, 130];
  const load = { started_at: new Date(112_000).toISOString(), elapsed_ms: 10_000 } as LiveLoad;
  expect(runSpan(at, { ...load, state: 'running' })).toEqual([112, 130]);
  expect(runSpan(at, { ...load, state: 'ended' })).toEqual([112, 122]);
  expect(runSpan(at, null)).toEqual([100, 130]);
});
