// A thousand instances: the real page with made-up events, so that what it keeps and moves can be counted.

import { type Page, expect, test } from '@playwright/test';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { EMPTY_STATE } from '../src/live/model/state.fixture';
import type { LiveHistory, LiveState, Rows, Series } from '../src/model/bindings';
import { type Served, freePort, home, serve, status, up, watched } from './live';

const COUNT = 1000;
const NODES = 3000;
const ids = Array.from({ length: COUNT }, (_, at) => at + 1);
const series: Series[] = [
  { name: 'instances', index: null, unit: 'count', per: 1 },
  { name: 'cpu_app', index: null, unit: 'cores', per: 1000 },
];

/** All values of a second. The slowest instance is the one that is told; the second is down, and the third fails. */
function rowsAt(time_ms: number, slowest: number): Rows {
  const all = (value: number) => ids.map(() => value);
  const times = ids.map((id) => (id === slowest ? 900_000 : 10_000 + id));
  return {
    time_ms,
    ids,
    state: ids.map((id) => (id === 2 ? 1 : 0)),
    slots: all(4),
    in_flight: ids.map((id) => id % 5),
    requests: all(50),
    failures: ids.map((id) => (id === 3 ? 20 : 0)),
    service_mean: times,
    service_p95: times,
    cpu: all(250),
    memory: all(40),
    restarts: all(0),
  };
}

const START_MS = Date.parse('2026-01-01T00:00:00Z');
const STATE: LiveState = {
  ...EMPTY_STATE,
  time_ms: START_MS,
  started_at: '2026-01-01T00:00:00Z',
  actions: ['scale', 'reload', 'restart', 'drain', 'output'],
  apps: [{ name: 'app', policy: 'round_robin', queue_length: 0 }],
  instances: ids.map((id) => ({
    id,
    app: 'app',
    name: `app-${id}`,
    address: '127.0.0.1:1',
    pid: id,
    started_ms: START_MS,
    warning: null,
  })),
  series,
  states: ['ready', 'down'],
  rows: rowsAt(START_MS, 10),
};
const HISTORY: LiveHistory = {
  boot: 'b',
  sequence: 0,
  series,
  old: { time_ms: [], mean: [[], []], min: [], max: [] },
  recent: {
    time_ms: ids.map((second) => START_MS - (COUNT - second) * 1000),
    mean: [ids.map(() => COUNT), ids.map(() => 500)],
    min: [],
    max: [],
  },
  marks: [],
};

/** The shell of the real program before a state that is made up, and a stream that the test writes. */
async function staged(shell: string) {
  const stream = new Readable({ read: () => undefined });
  let sequence = 0;
  const send = (event: string, data: object) =>
    stream.push(`id: ${++sequence}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const answers: Record<string, object> = {
    '/api/state': STATE,
    '/api/history': HISTORY,
    '/api/history/instances': { instances: [] },
  };
  const server = createServer(async (asked, answered) => {
    const path = (asked.url ?? '').split('?')[0] ?? '';
    if (path === '/api/events') {
      stream.pipe(answered.writeHead(200, { 'content-type': 'text/event-stream' }));
      send('hello', { boot: 'b', version: '1', schema: STATE.schema, sequence: 0, tick_ms: 1000 });
    } else if (answers[path]) {
      answered.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answers[path]));
    } else {
      const answer = await fetch(new URL(asked.url ?? '', shell));
      const type = answer.headers.get('content-type') ?? '';
      answered.writeHead(answer.status, { 'content-type': type });
      answered.end(Buffer.from(await answer.arrayBuffer()));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  /** What one second brings. */
  const second = (nth: number, slowest: number) => {
    const time_ms = START_MS + nth * 1000;
    send('tick', { time_ms, values: [COUNT, 500] });
    send('rows', rowsAt(time_ms, slowest));
  };
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, second, close };
}

/** Elements, texts and the framework's marks. */
const nodes = (page: Page) =>
  page.evaluate(() => {
    const walker = document.createTreeWalker(document);
    let count = 1;
    while (walker.nextNode()) count += 1;
    return count;
  });

let served: Served;
test.beforeAll(async () => {
  served = await serve(home(), `127.0.0.1:${await freePort()}`, ...up(1, 'node', 'app.cjs'));
});
test.afterAll(() => served.end());

test('a thousand instances take few nodes, and rows stand while they are read', async ({ page }) => {
  const stage = await staged(served.url);
  const faults = watched(page, stage.url);
  await page.goto(`${stage.url}#/instances`);
  await expect(status(page)).toHaveText('● ready');
  const rows = page.getByRole('region', { name: 'Instances' }).locator('tbody tr');
  const names = () => rows.locator('th').allTextContents();
  await expect(rows).toHaveCount(50);
  const before = await names();
  expect(before.slice(0, 4)).toEqual(['app-2', 'app-3', 'app-10', 'app-1000']);

  for (const nth of [1, 2, 3, 4]) stage.second(nth, 20);
  await expect(rows.first()).toContainText('0:04');
  expect(await names()).toEqual(before);
  await expect(page.getByRole('region', { name: 'Verdict' })).toContainText('app-20 is slow');
  expect(await nodes(page)).toBeLessThanOrEqual(NODES);
  stage.second(6, 20);
  await expect(rows.nth(2)).toContainText('app-20');

  const strip = page.getByRole('img', { name: '998 ready, 1 failing, 1 without requests' });
  // The second cell of the first line.
  await strip.hover({ position: { x: 24, y: 10 } });
  await expect(strip.locator('title')).toHaveText('app-2: down');
  await strip.hover({ position: { x: 15.5, y: 10 } });
  await expect(strip.locator('title')).toHaveCount(0);

  await page.getByRole('searchbox', { name: 'Filter' }).fill('app-77');
  await expect(rows).toHaveCount(11);
  await page.getByRole('searchbox', { name: 'Filter' }).fill('');
  await page.getByRole('button', { name: 'Next' }).click();
  await expect(page.getByText('2 of 20')).toBeVisible();
  await page.getByRole('button', { name: '95%ile' }).click();
  await page.getByRole('button', { name: 'Previous' }).click();
  await expect(rows.first()).toContainText('app-20');
  expect(faults).toEqual([]);
  stage.close();
});
