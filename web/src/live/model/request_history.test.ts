import { expect, test } from 'vitest';
import type { LoadStatistics } from '../../model/bindings';
import { requestPanels, withLook } from './request_history';

const look = (elapsed: number, names: string[], id = 1) =>
  ({
    load: { id, elapsed_ms: elapsed, state: 'running' },
    statistics: names.map((name) => ({ method: 'GET', name, p95: 20 })),
    current: names.map((_, at) => ({ rate: 10 * (at + 1), failure_rate: at })),
    failures: [],
  }) as unknown as LoadStatistics;

test('each kind of request has its own chart, also one that came later', () => {
  const first = withLook(null, look(2000, ['/a']));
  const history = withLook(withLook(first, look(4000, ['/a', '/b'])), look(4000, ['/a']));
  expect(history.at).toEqual([2, 4]);
  const [rates] = requestPanels(history, 'GET /b');
  expect(rates?.lines.map(({ column }) => column)).toEqual([
    [null, 20],
    [null, 1],
  ]);
  expect(requestPanels(history, 'GET /nothing')).toEqual([]);
});

test('another load, or a reset, begins anew', () => {
  const history = withLook(null, look(8000, ['/a']));
  expect(withLook(history, look(2000, ['/a'])).at).toEqual([2]);
  expect(withLook(history, look(9000, ['/a'], 2)).at).toEqual([9]);
});
