import { expect, test } from 'vitest';
import type { LiveState } from '../../model/bindings';
import { snapshotOf, withEvents } from './snapshot';
import { EMPTY_STATE } from './state.fixture';
import type { Event } from './stream';
import { silence, statusOf } from './status';

const instance = (id: number) => ({
  id,
  app: 'app',
  name: `app-${id}`,
  address: '',
  pid: null,
  started_ms: null,
  warning: null,
});
const STATE: LiveState = {
  ...EMPTY_STATE,
  sequence: 5,
  actions: ['scale'],
  instances: [instance(1)],
  series: [{ name: 'requests', index: null, unit: 'per_second', per: 10 }],
  states: ['starting', 'ready'],
};
const tier = { time_ms: [], mean: [[]], min: [], max: [] };
const HISTORY = { boot: 'b', sequence: 5, series: STATE.series, old: tier, recent: tier, marks: [] };
const snapshot = () => snapshotOf(STATE, HISTORY, { instances: [] });
const mark = (id: number): Event => ({
  id,
  name: 'mark',
  data: { time_ms: id, kind: 'load', text: String(id), instance: null },
});

test('an event counts once', () => {
  const once = withEvents(snapshot(), [mark(5), mark(6), mark(6)]);
  expect(once.live.marks.map(({ text }) => text)).toEqual(['6']);
  expect(once.sequence).toBe(6);
  expect(withEvents(once, [mark(6), mark(7)]).live.marks).toHaveLength(2);
});

test('instances come and go', () => {
  const define = { apps: null, actions: [], instances: [instance(2)], gone: [1] };
  const after = withEvents(snapshot(), [{ id: 6, name: 'define', data: define }]);
  expect([...after.rows.keys()]).toEqual([2]);
  expect(after.live.actions).toEqual([]);
  expect([...snapshot().rows.keys()]).toEqual([1]);
});

test('a tick becomes a value of its series', () => {
  const after = withEvents(snapshot(), [{ id: 6, name: 'tick', data: { time_ms: 1000, values: [25] } }]);
  expect(after.timeline).toMatchObject({ at: [1], columns: [[2.5]] });
});

test('the head says what is so, and a silence is told', () => {
  expect(statusOf(STATE, 'live').word).toBe('ready');
  expect(statusOf(STATE, 'lost').word).toBe('connection lost');
  expect(statusOf({ ...STATE, kind: 'plan' }, 'live').word).toBe('measuring');
  expect(silence(10_000, 8000, 1000)).toBeNull();
  expect(silence(14_000, 8000, 1000)).toBe(6);
  expect(silence(14_000, 8000, 5000)).toBeNull();
});
