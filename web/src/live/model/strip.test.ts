import { expect, test } from 'vitest';
import type { Row } from './instances';
import { cellAt, stripOf } from './strip';

const row = (id: number, over: Partial<Row> = {}) =>
  ({ id, name: `app-${id}`, state: 'ready', slots: 4, inFlight: 0, failureRate: 0, ...over }) as Row;

test('each state has one path, and slots are counted', () => {
  const rows = [row(1, { state: 'down' }), row(2, { inFlight: 2 }), row(3, { failureRate: 1 }), row(10)];
  // Three cells fit side by side.
  const strip = stripOf(rows, 50);
  expect([strip.used, strip.slots]).toEqual([2, 16]);
  expect(strip.counts).toEqual({ ready: 2, fails: 1, away: 1 });
  expect(strip.frames.ready.match(/M[^h]*/g)).toEqual(['M19.75,0.75', 'M2.75,23.75']);
  expect(strip.fills).toEqual({ ready: 'M19.5,17.5h9v-7.5h-9z', fails: '', away: '' });
  expect(strip.crosses).toMatch(/^M3,6/);
  expect(strip.height).toBe(43);
});

test('a point is in a cell, between cells, or behind the last', () => {
  const at = (x: number, y: number) => cellAt(x, y, 4, 50);
  expect([at(1, 1), at(18, 5), at(1, 24)]).toEqual([0, 1, 3]);
  expect([at(15.5, 5), at(1, 21.5), at(18, 24), at(-1, 1)]).toEqual([null, null, null, null]);
});
