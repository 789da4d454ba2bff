import { expect, test } from 'vitest';
import type { Row } from './instances';
import { placesOf } from './places';

const row = (id: number, place: string, state: Row['state']) =>
  ({ id, place, state, successor: null }) as Row;
const shown = (...rows: Row[]) =>
  [...placesOf(new Map(rows.map((one) => [one.id, one]))).values()].map(({ id, successor }) => [
    id,
    successor,
  ]);

test('a reload shows one row for an instance: the one that serves, and what becomes of the other', () => {
  expect(shown(row(1, 'a', 'ready'), row(2, 'b', 'ready'))).toEqual([
    [1, null],
    [2, null],
  ]);
  expect(shown(row(1, 'a', 'ready'), row(3, 'a', 'starting'), row(2, 'b', 'ready'))).toEqual([
    [1, 'successor starts'],
    [2, null],
  ]);
  expect(shown(row(1, 'a', 'draining'), row(3, 'a', 'ready'))).toEqual([[3, 'predecessor drains']]);
  expect(shown(row(1, 'a', 'stopping'), row(3, 'a', 'starting'))).toEqual([[3, null]]);
});
