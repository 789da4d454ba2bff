import { expect, test } from 'vitest';
import type { LiveHistory } from '../../model/bindings';
import { column, extended, latest, timelineOf } from './timeline';

const HISTORY: LiveHistory = {
  boot: 'b',
  sequence: 1,
  series: [
    { name: 'p95', index: null, unit: 'milliseconds', per: 1000 },
    { name: 'core', index: 0, unit: 'cores', per: 1000 },
  ],
  old: { time_ms: [1000], min: [[1000], [0]], max: [[9000], [1000]] },
  recent: {
    time_ms: [2000, 3000],
    min: [
      [2000, null],
      [500, 0],
    ],
    max: [],
  },
  marks: [],
};
const tick = (second: number, value: number | null) => ({ time_ms: second * 1000, values: [value, 250] });

test('old values keep their peaks, and absent ones are no zero', () => {
  const timeline = timelineOf(HISTORY);
  expect(timeline.at).toEqual([1, 2, 3]);
  expect(column(timeline, 'p95')).toEqual([9, 2, null]);
  expect(latest(timeline, 'core', 0)).toBe(0);
  expect(column(timeline, 'core', 1)).toEqual([]);
});

test('ticks go on once each, and a silence is a gap', () => {
  const timeline = extended(timelineOf(HISTORY), [tick(3, 1), tick(4, 4000), tick(9, 5000)], 1000);
  expect(timeline.at).toEqual([1, 2, 3, 4, 4.5, 9]);
  expect(column(timeline, 'p95')).toEqual([9, 2, null, 4, null, 5]);
});

test('an hour is kept', () => {
  const ticks = Array.from({ length: 4000 }, (_, at) => tick(4 + at, 1000));
  const timeline = extended(timelineOf(HISTORY), ticks, 1000);
  expect((timeline.at.at(-1) ?? 0) - (timeline.at[0] ?? 0)).toBe(3600);
  expect(timeline.columns.every(({ length }) => length === timeline.at.length)).toBe(true);
});
