// The live page of the real program: what somebody does who knows Locust, and what goes wrong meanwhile.

import { type Page, expect, test } from '@playwright/test';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { accessible } from './axe';
import { HOSTILE, type Served, freePort, home, serve, watched } from './live';
import { PROGRAM } from './reports';

test.describe.configure({ mode: 'serial' });

let up: Served;
const place = home();

test.beforeAll(async () => {
  const words = ['-n', '3', '--listen', '127.0.0.1:0', '--', 'node', 'app.cjs'];
  up = await serve(place, await freePort(), 'up', ...words);
});

test.afterAll(() => up.end());

const verdict = (page: Page) => page.getByRole('region', { name: 'Verdict' });
const figure = (page: Page, name: string) => verdict(page).locator(`dt:text-is("${name}") + dd`);

async function check(page: Page, faults: string[]) {
  await accessible(page);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
    page.viewportSize()?.width ?? 0,
  );
  expect(faults).toEqual([]);
}

for (const [scheme, width] of [
  ['light', 1120],
  ['dark', 320],
] as const) {
  test(`a load is started, changed and stopped, ${scheme}, ${width} px`, async ({ browser }) => {
    const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
    const page = await context.newPage();
    const faults = watched(page, up.url);
    await page.goto(up.url);
    await page.getByLabel('Number of users').fill('6');
    await page.getByLabel('Ramp up').fill('');
    await page.getByText('Advanced options').click();
    await page.getByLabel('Goal: 95 %').fill('500');
    await page.getByRole('button', { name: 'Start' }).click();
    await expect(figure(page, 'Users')).toHaveText('6');
    await expect(verdict(page).locator('.lead')).toContainText('the goal of 500 ms is held');
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Number of users').fill('9');
    await page.getByRole('button', { name: 'Update' }).click();
    await expect(figure(page, 'Users')).toHaveText('9');
    await expect(page.getByRole('region', { name: 'Statistics' }).locator('tfoot')).toContainText(
      'Aggregated',
    );
    await check(page, faults);

    await page.getByRole('link', { name: 'Instances' }).click();
    await expect(verdict(page)).toContainText(/app-2 is slow: .* times as long as its peers/, {
      timeout: 15_000,
    });
    const first = page.getByRole('region', { name: 'Instances' }).locator('tbody tr').first();
    await expect(first).toContainText('app-2');
    await check(page, faults);

    await page.getByRole('link', { name: 'Run' }).click();
    await page.getByRole('button', { name: 'Stop' }).click();
    await expect(page.getByRole('button', { name: 'Start' })).toBeVisible();
    await expect(page.getByText(/run \d+ of the history/)).toBeVisible();
    await context.close();
  });
}

test('what an app writes stays text, and an instance is restarted where it stands', async ({ page }) => {
  const faults = watched(page, up.url);
  await page.goto(`${up.url}#/instances`);
  const table = page.getByRole('region', { name: 'Instances' });
  await table.getByRole('button', { name: 'Output' }).first().click();
  await expect(page.getByRole('log')).toContainText(HOSTILE);
  expect(await page.locator('img').count()).toBe(0);
  await table.getByRole('button', { name: 'Restart', exact: true }).first().click();
  await expect(page.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await page.keyboard.press('Escape');
  await table.getByRole('button', { name: 'Restart', exact: true }).first().click();
  await page.getByRole('button', { name: 'Yes, restart' }).click();
  await expect(page.getByText(/^app-\d was replaced/)).toBeVisible({ timeout: 15_000 });
  expect(await page.title()).toBe('Instances · app · Tenfold');
  expect(faults).toEqual([]);
});

test('two loads of the history are compared', async ({ page }) => {
  const faults = watched(page, up.url);
  await page.goto(`${up.url}#/history`);
  const boxes = page.getByRole('checkbox', { name: /Compare run/ });
  await expect(boxes).toHaveCount(2);
  for (const box of await boxes.all()) await box.check();
  await page.getByRole('button', { name: 'Compare two loads' }).click();
  await expect(page.getByText('Comparison', { exact: true })).toBeVisible();
  await check(page, faults);
});

test('a plan is watched to its answer, and a server that comes back is found', async ({ page }) => {
  test.setTimeout(60_000);
  const port = await freePort();
  const goal = ['--rate', '80', '--p95', '500ms', '--budget', '8s'];
  const plan = await serve(place, port, 'plan', ...goal, '--', PROGRAM, 'demo-app');
  await page.goto(plan.url);
  await expect(page.getByRole('list', { name: /Requests a second of each/ })).toBeVisible({
    timeout: 20_000,
  });
  await accessible(page);
  await expect(page.getByText('Ended.')).toBeVisible({ timeout: 40_000 });
  // Which answer it is depends on what else the machine does.
  await expect(page.getByRole('region', { name: 'Answer' }).getByRole('heading')).toContainText(/\w+ \w+/);
  const back = await serve(place, port, 'up', '-n', '1', '--listen', '127.0.0.1:0', '--', 'node', 'app.cjs');
  await expect(page.getByText('ready', { exact: true })).toBeVisible({ timeout: 20_000 });
  await back.end();
});

test('the page is small', () => {
  const size = (name: string) => gzipSync(readFileSync(`dist/${name}`), { level: 9 }).length;
  expect(size('page.js') + size('page.css')).toBeLessThanOrEqual(100_000);
});
