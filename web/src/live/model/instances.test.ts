import { expect, test } from 'vitest';
import { type Row, difference, rowsOf, rowsWith, historiesWith, worstFirst } from './instances';

const row = (name: string, over: Partial<Row> = {}): Row => ({
  id: Number(name.slice(-1)),
  name,
  place: `app/${name}`,
  successor: null,
  app: 'app',
  address: '',
  pid: null,
  startedMs: null,
  warning: null,
  state: 'ready',
  slots: 4,
  inFlight: 1,
  rate: 50,
  failureRate: 0,
  mean: 20,
  p95: 30,
  cpu: 0.1,
  memory: 40,
  restarts: 0,
  ...over,
});

test('what does not serve stands first, then what fails, then what is slow', () => {
  const rows = [
    row('app-1'),
    row('app-2', { p95: 90 }),
    row('app-3', { failureRate: 2 }),
    row('app-4', { state: 'backoff' }),
    row('app-10'),
  ];
  expect(worstFirst(rows).map(({ name }) => name)).toEqual(['app-4', 'app-3', 'app-2', 'app-1', 'app-10']);
});

test('an instance has the name that its user gave it', () => {
  const shown = { app: 'app', address: '', pid: null, started_ms: null, warning: null };
  const instances = [
    { ...shown, id: 1, name: 'app-1', display_name: 'fib@7' },
    { ...shown, id: 2, name: 'app-2' },
  ];
  expect([...rowsOf(instances, new Map()).values()].map(({ name }) => name)).toEqual(['fib@7', 'app-2']);
});

test('the instance that is different is named with the reason', () => {
  expect(difference([row('app-1'), row('app-2', { mean: 60 }), row('app-3', { mean: 18 })])).toBe(
    'app-2 is slow: 60 ms a request, 3.3 times as long as its peers (18 ms).',
  );
  expect(difference([row('app-1'), row('app-2', { mean: 2468 }), row('app-3')])).toContain('123 times as');
  expect(difference([row('app-1'), row('app-2', { mean: 22 })])).toMatch(
    /^All instances answer alike: 20 ms/,
  );
  expect(difference([row('app-1', { state: 'down' }), row('app-2')])).toMatch(
    /^app-1 gets no requests \(down\)/,
  );
  expect(difference([row('app-1', { rate: 0, mean: null })])).toBe('1 instance is ready.');
  expect(difference([row('app-1', { mean: 90, rate: 0.1 }), row('app-2')])).not.toMatch(/slow/);
});

const INSTANCE = { id: 1, app: 'a', name: 'a-1', address: '', pid: 1, started_ms: null, warning: null };
const changed = (time_ms: number, service_mean: number | null) => ({
  time_ms,
  ids: [1, 9],
  state: [1, 1],
  slots: [4, 4],
  in_flight: [2, 0],
  requests: [55, 0],
  failures: [5, 0],
  service_mean: [service_mean, null],
  service_p95: [null, null],
  cpu: [250, 0],
  memory: [40, 0],
  restarts: [1, 0],
});

test('a row has the units of people, and one that is unknown is left out', () => {
  const before = rowsOf([INSTANCE, { ...INSTANCE, id: 2 }], new Map());
  const rows = rowsWith(before, ['starting', 'ready'], changed(1000, 20_500));
  expect([...rows.keys()]).toEqual([1, 2]);
  expect(rows.get(2)).toBe(before.get(2));
  expect(rows.get(1)).toMatchObject({
    state: 'ready',
    rate: 5.5,
    failureRate: 0.5,
    mean: 20.5,
    p95: null,
    cpu: 0.25,
  });
});

test('rows stand by name, and keep what is known of them', () => {
  const known = new Map([[1, row('a-10', { id: 1, mean: 20 })]]);
  const rows = rowsOf(
    [
      { ...INSTANCE, name: 'a-10' },
      { ...INSTANCE, id: 2, name: 'a-9' },
    ],
    known,
  );
  expect([...rows.values()].map(({ name, mean }) => [name, mean])).toEqual([
    ['a-9', null],
    ['a-10', 20],
  ]);
});

test('a history holds a minute', () => {
  const rows = rowsOf([INSTANCE], new Map());
  let histories = new Map();
  for (const second of [1, 1, 30, 80])
    histories = historiesWith(histories, rows, changed(second * 1000, second * 1000));
  expect(histories.get(1)).toEqual({ at: [30_000, 80_000], mean: [30, 80] });
});
