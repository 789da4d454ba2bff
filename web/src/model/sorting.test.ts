import { expect, it } from 'vitest';
import { sorted, turned } from './sorting';

const rows = [
  { name: 'b', p95: 2 },
  { name: 'a', p95: null },
  { name: 'c', p95: 10 },
];
const names = (by: 'name' | 'p95', descending: boolean) =>
  sorted(rows, { by, descending }).map((row) => row.name);

it('sorts numbers as numbers and leaves absent ones last', () => {
  expect(names('p95', true)).toEqual(['c', 'b', 'a']);
  expect(names('p95', false)).toEqual(['b', 'c', 'a']);
  expect(names('name', false)).toEqual(['a', 'b', 'c']);
  expect(rows.map((row) => row.name)).toEqual(['b', 'a', 'c']);
});

it('sorts names with numbers as people count', () => {
  const apps = ['app-10', 'app-2', 'app-1'].map((name) => ({ name }));
  const order = sorted(apps, { by: 'name', descending: false });
  expect(order.map((row) => row.name)).toEqual(['app-1', 'app-2', 'app-10']);
});

it('turns round when its head is chosen again', () => {
  const once = turned({ by: 'name', descending: false }, 'p95');
  expect(once).toEqual({ by: 'p95', descending: true });
  expect(turned(once, 'p95')).toEqual({ by: 'p95', descending: false });
});
