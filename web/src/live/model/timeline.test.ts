import { expect, test } from 'vitest';
import type { LiveHistory } from '../../model/bindings';
import { column, ends, extended, inSteps, latest, timelineOf } from './timeline';

const HISTORY: LiveHistory = {
  boot: 'b',
  sequence: 1,
  series: [
    { name: 'p95', index: null, unit: 'milliseconds', per: 1000 },
    { name: 'core', index: 0, unit: 'cores', per: 1000 },
  ],
  old: { time_ms: [1000], mean: [[4000], [300]], min: [[1000], [0]], max: [[9000], [1000]] },
  recent: {
    time_ms: [2000, 3000],
    mean: [
      [2000, null],
      [500, 0],
    ],
    min: [],
    max: [],
  },
  marks: [],
};
const tick = (second: number, value: number | null) => ({ time_ms: second * 1000, values: [value, 250] });

test('old values keep mean, least and most, and absent ones are no zero', () => {
  const timeline = timelineOf(HISTORY);
  expect(timeline.at).toEqual([1, 2, 3]);
  expect(column(timeline, 'p95')).toEqual([4, 2, null]);
  expect(ends(timeline, 'p95')).toEqual({ least: [1, 2, null], most: [9, 2, null] });
  expect(latest(timeline, 'core', 0)).toBe(0);
  expect(column(timeline, 'core', 1)).toEqual([]);
});

test('ticks go on once each, and a silence is a gap', () => {
  const timeline = extended(timelineOf(HISTORY), [tick(3, 1), tick(4, 4000), tick(9, 5000)], 1000);
  expect(timeline.at).toEqual([1, 2, 3, 4, 4.5, 9]);
  expect(column(timeline, 'p95')).toEqual([4, 2, null, 4, null, 5]);
});

test('an hour is kept', () => {
  const ticks = Array.from({ length: 4000 }, (_, at) => tick(4 + at, 1000));
  const timeline = extended(timelineOf(HISTORY), ticks, 1000);
  expect((timeline.at.at(-1) ?? 0) - (timeline.at[0] ?? 0)).toBe(3600);
  expect(timeline.columns.every(({ length }) => length === timeline.at.length)).toBe(true);
});

test('an hour in steps keeps its dips and peaks, and parts stay within their whole', () => {
  const none = { time_ms: [], mean: [], min: [], max: [] };
  const empty = timelineOf({ ...HISTORY, old: none, recent: none });
  const ticks = Array.from({ length: 3600 }, (_, second) => ({
    time_ms: second * 1000,
    values: [
      second % 300 === 150 ? 300_000 : second % 300 === 20 ? 0 : 10_000,
      second % 2 === 0 ? 1900 : 100,
    ],
  }));
  const steps = inSteps(extended(empty, ticks, 1000), 10);
  expect(steps.at.length).toBe(360);
  const p95 = ends(steps, 'p95');
  expect(p95?.most.filter((value) => value === 300).length).toBe(12);
  expect(p95?.least.filter((value) => value === 0).length).toBe(12);
  expect(column(steps, 'p95').filter((value) => value === 10).length).toBe(336);
  expect(Math.max(...column(steps, 'core', 0).map(Number))).toBe(1);
  expect(inSteps(extended(empty, [tick(1, 1), tick(2, 2), tick(9, 3)], 1000), 10).at).toEqual([2, 2.5, 9]);
});
