import { expect, test } from 'vitest';
import type { Row } from './instances';
import { StableOrder } from './stable_order';

/** Rows of which each has such a 95th percentile. */
const fleet = (...p95: number[]) =>
  new Map(
    p95.map((p95, at) => [at, { id: at, name: `app-${at}`, state: 'ready', failureRate: 0, p95 } as Row]),
  );
const ids = (rows: Row[]) => rows.map(({ id }) => id);

test('the order stands for five seconds, and values do not', () => {
  const stable = new StableOrder();
  expect(ids(stable.rows(fleet(1, 2), null, 0))).toEqual([1, 0]);
  const later = stable.rows(fleet(9, 2), null, 4999);
  expect(later.map(({ p95 }) => p95)).toEqual([2, 9]);
  expect(ids(stable.rows(fleet(9, 2), null, 5000))).toEqual([0, 1]);
});

test('another order, a new row and a clock that was put back are seen at once', () => {
  const stable = new StableOrder();
  stable.rows(fleet(1, 2), null, 10_000);
  expect(ids(stable.rows(fleet(1, 2), { by: 'p95', descending: false }, 10_001))).toEqual([0, 1]);
  stable.rows(fleet(1, 2), null, 10_002);
  expect(ids(stable.rows(fleet(9, 2), null, 9000))).toEqual([0, 1]);
  expect(ids(stable.rows(fleet(1, 2, 3), null, 9001))).toEqual([2, 1, 0]);
});

test('a row that is gone leaves the others where they are', () => {
  const stable = new StableOrder();
  stable.rows(fleet(1, 2, 3), null, 0);
  expect(ids(stable.rows(fleet(9, 2), null, 1000))).toEqual([1, 0]);
});
