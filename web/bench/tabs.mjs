// Opens the live page in Chromium, watches what it costs for some seconds, and prints that as JSON.
// node web/bench/tabs.mjs URL SECONDS [hour]
// node web/bench/tabs.mjs URL open: comes to the page as soon as it is served, and stays until it is ended.

import { chromium } from '@playwright/test';

const [url = '', seconds = '60', hour = ''] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
});
const context = await browser.newContext({ viewport: { width: 1120, height: 900 } });
const page = await context.newPage();

/** Nothing looks into the page meanwhile: a script that waits for a picture makes the browser draw sixty a second. */
async function stayOpen() {
  console.log('the browser is open');
  const isServed = () => page.goto(url).catch(() => null);
  while (!(await isServed())) await new Promise((later) => setTimeout(later, 100));
  console.log('the page is open');
  await new Promise(() => undefined);
}
if (seconds === 'open') await stayOpen();

/** An hour of ticks, out of those that there are: single ones of ten minutes, and ten seconds each before. */
async function answerAnHour(route) {
  const answer = await route.fetch();
  const history = await answer.json();
  const { recent } = history;
  const last = recent.time_ms.at(-1);
  const tier = (points, end, step) => ({
    time_ms: Array.from({ length: points }, (_, at) => end - (points - 1 - at) * step),
    min: recent.min.map((column) => Array.from({ length: points }, (_, at) => column[at % column.length])),
    max: [],
  });
  history.recent = tier(600, last, 1000);
  history.old = tier(300, last - 600_000, 10_000);
  history.old.max = history.old.min;
  await route.fulfill({ response: answer, json: history });
}
if (hour === 'hour') await page.route('**/api/history', answerAnHour);

await page.addInitScript(() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const { duration, startTime } of list.getEntries())
      if (startTime > window.from) window.longest = Math.max(window.longest, duration);
  }).observe({ type: 'longtask' });
  const look = () => {
    if (document.querySelector('.plot canvas')) window.painted ??= performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
});

const client = await context.newCDPSession(page);
await client.send('Performance.enable');
await client.send('Network.enable');
let bytes = 0;
client.on('Network.dataReceived', ({ dataLength }) => (bytes += dataLength));
const metrics = async () => {
  const { metrics } = await client.send('Performance.getMetrics');
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
};

await page.goto(url);
await page.waitForFunction(() => window.painted !== undefined);
// What it needs to get there is told by itself.
await page.waitForTimeout(3000);
await page.evaluate(() => (window.from = performance.now()));
const before = await metrics();
const first = bytes;
await page.waitForTimeout(1000 * Number(seconds));
const after = await metrics();
const spent = after.Timestamp - before.Timestamp;
await client.send('HeapProfiler.collectGarbage');
const settled = await metrics();
console.log(
  JSON.stringify({
    painted_ms: await page.evaluate(() => window.painted),
    cores: (after.TaskDuration - before.TaskDuration) / spent,
    longest_task_ms: await page.evaluate(() => window.longest),
    bytes_per_s: (bytes - first) / spent,
    first_bytes: first,
    dom_nodes: settled.Nodes,
    heap_bytes: settled.JSHeapUsedSize,
  }),
);
await browser.close();
