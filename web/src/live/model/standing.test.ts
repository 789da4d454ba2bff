import { expect, test } from 'vitest';
import type { Row } from './instances';
import { StandingOrder } from './standing';

/** Rows of which each has such a 95th percentile. */
const fleet = (...p95: number[]) =>
  new Map(
    p95.map((p95, at) => [at, { id: at, name: `app-${at}`, state: 'ready', failureRate: 0, p95 } as Row]),
  );
const ids = (rows: Row[]) => rows.map(({ id }) => id);

test('the order stands for five seconds, and values do not', () => {
  const standing = new StandingOrder();
  expect(ids(standing.rows(fleet(1, 2), null, 0))).toEqual([1, 0]);
  const later = standing.rows(fleet(9, 2), null, 4999);
  expect(later.map(({ p95 }) => p95)).toEqual([2, 9]);
  expect(ids(standing.rows(fleet(9, 2), null, 5000))).toEqual([0, 1]);
});

test('another order, a new row and a clock that was put back are seen at once', () => {
  const standing = new StandingOrder();
  standing.rows(fleet(1, 2), null, 10_000);
  expect(ids(standing.rows(fleet(1, 2), { by: 'p95', descending: false }, 10_001))).toEqual([0, 1]);
  standing.rows(fleet(1, 2), null, 10_002);
  expect(ids(standing.rows(fleet(9, 2), null, 9000))).toEqual([0, 1]);
  expect(ids(standing.rows(fleet(1, 2, 3), null, 9001))).toEqual([2, 1, 0]);
});

test('a row that is gone leaves the others where they are', () => {
  const standing = new StandingOrder();
  standing.rows(fleet(1, 2, 3), null, 0);
  expect(ids(standing.rows(fleet(9, 2), null, 1000))).toEqual([1, 0]);
});
