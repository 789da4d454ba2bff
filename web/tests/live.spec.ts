// The walk of somebody who knows Locust. They watch a plan, start a load and change it, see which instance is slow, and
// read how many would do. One server runs after the other, at one address.

import { type Page, expect, test } from '@playwright/test';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { accessible } from './axe';
import { HOSTILE, type Served, freePort, home, serve, status, up, watched } from './live';
import { draw, drawing } from './pictures';

test.describe.configure({ mode: 'serial' });

let served: Served;
const place = home();

test.afterAll(() => served.end());

const verdict = (page: Page) => page.getByRole('region', { name: 'Verdict' });
const figure = (page: Page, name: string) => verdict(page).locator(`dt:text-is("${name}") + dd`);
const answer = (page: Page) => page.getByRole('region', { name: 'Answer' });
const open = (page: Page, view: string) => page.getByRole('link', { name: view, exact: true }).click();

async function check(page: Page, faults: string[]) {
  await accessible(page);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
    page.viewportSize()?.width ?? 0,
  );
  expect(faults).toEqual([]);
}

test('a plan is watched to its answer, and the server that follows is found', async ({ page }) => {
  test.setTimeout(90_000);
  const admin = `127.0.0.1:${await freePort()}`;
  // A machine that does other things meanwhile makes it suspect: how many is said nevertheless.
  const goal = ['--rate', '150', '--p95', '500ms', '--budget', drawing ? '40s' : '8s', '--allow-suspect'];
  served = await serve(place, admin, 'plan', ...goal, '--', 'node', 'app.cjs');
  await page.goto(served.url);
  const ladder = page.getByRole('list', { name: /Requests a second of each/ });
  await expect(ladder).toBeVisible({ timeout: 20_000 });
  await expect(page.getByText('Ended.')).toBeVisible({ timeout: 60_000 });
  await expect(answer(page).getByRole('heading')).toContainText(/\d instances?/);
  served = await serve(place, admin, ...up(3, 'env', 'SLOW=2', 'node', 'app.cjs'));
  await expect(status(page)).toHaveText('● ready', { timeout: 20_000 });
});

for (const [scheme, width] of [
  ['light', 1120],
  ['dark', 320],
] as const) {
  const suffix = width > 400 ? '' : '-phone';

  test(`a load leads to the slow instance and to how many, ${scheme}, ${width} px`, async ({ browser }) => {
    test.setTimeout(90_000);
    const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
    const page = await context.newPage();
    const faults = watched(page, served.url);
    await page.goto(served.url);
    await page.getByLabel('Number of users').fill('4');
    await page.getByLabel('Ramp up').fill('');
    await page.getByText('Advanced options').click();
    await page.getByLabel('Goal: 95 %').fill('2000');
    await page.getByRole('button', { name: 'Start' }).click();
    await expect(figure(page, 'Users')).toHaveText('4');
    await expect(verdict(page).locator('.lead')).toContainText('the goal of 2000 ms is held');
    if (drawing) await page.waitForTimeout(15_000);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Number of users').fill('8');
    await page.getByRole('button', { name: 'Update' }).click();
    await expect(figure(page, 'Users')).toHaveText('8');
    await expect(page.getByRole('region', { name: 'Statistics' })).toContainText('Aggregated');
    const cpu = /^CPU cores: app .*, generator .*, together .* of \d+ cores?$/;
    await expect(page.getByRole('img', { name: cpu })).toBeVisible();
    if (drawing) await page.waitForTimeout(15_000);
    await check(page, faults);
    await draw(page, `live-run${suffix}`, width > 400 ? 1000 : 780);

    await open(page, 'Instances');
    const slow = /app-2 is slow: .* times as long as its peers/;
    await expect(verdict(page)).toContainText(slow, { timeout: 15_000 });
    const rows = page.getByRole('region', { name: 'Instances' }).locator('tbody tr');
    // The order of the rows stands for some seconds.
    await expect(rows.first()).toContainText('app-2', { timeout: 15_000 });
    const bar = rows.first().locator('.slots svg');
    const widths = [bar, bar.locator('.whole')].map(async (part) => (await part.boundingBox())?.width);
    expect(await widths[0]).toBe(await widths[1]);
    await check(page, faults);
    await draw(page, `live-instances${suffix}`, 780);

    await open(page, 'Plan');
    await expect(answer(page).getByRole('heading')).toContainText(/\d instances?/);
    await expect(page.getByRole('img', { name: /instances/ }).first()).toBeVisible();
    // Why, and what would help. What is found depends on what else the machine does.
    await expect(page.getByRole('article').first()).toContainText(/\d+ % .*\./);
    await check(page, faults);
    await draw(page, `live-plan${suffix}`, width > 400 ? 1000 : 780);

    await open(page, 'Run');
    await page.getByRole('button', { name: 'Stop' }).click();
    await expect(page.getByRole('button', { name: 'Start' })).toBeVisible();
    await expect(page.getByText(/run \d+ of the history/)).toBeVisible();
    await context.close();
  });
}

test('what an app writes stays text, and an instance is restarted where it stands', async ({ page }) => {
  const faults = watched(page, served.url);
  await page.goto(`${served.url}#/instances`);
  const table = page.getByRole('region', { name: 'Instances' });
  await table.getByRole('button', { name: 'Output' }).first().click();
  await expect(page.getByRole('region', { name: /Output of/ })).toContainText(HOSTILE);
  expect(await page.locator('img').count()).toBe(0);
  await table.getByRole('button', { name: 'Restart', exact: true }).first().click();
  await expect(page.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await page.keyboard.press('Escape');
  await table.getByRole('button', { name: 'Restart', exact: true }).first().click();
  await page.getByRole('button', { name: 'Yes, restart' }).click();
  await expect(page.getByText(/^app-\d was replaced/)).toBeVisible({ timeout: 15_000 });
  const count = page.getByRole('spinbutton', { name: 'Instances' });
  await count.fill('');
  await expect(count).toHaveValue('');
  await expect(page.getByRole('button', { name: 'Scale' })).toBeDisabled();
  await page.getByRole('button', { name: 'Keys' }).click();
  await page.getByLabel('Use keys').uncheck();
  await page.getByLabel('Use keys').blur();
  await page.keyboard.press('1');
  expect(new URL(page.url()).hash).toBe('#/instances');
  await page.getByLabel('Use keys').check();
  expect(await page.title()).toBe('Instances · app · Tenfold');
  expect(faults).toEqual([]);
});

test('the history is filtered, shows a trend, and compares two loads', async ({ page }) => {
  const faults = watched(page, served.url);
  await page.goto(`${served.url}#/history`);
  const runs = page.getByRole('main').getByRole('listitem');
  await expect(runs).toHaveCount(3);
  await page.getByRole('combobox', { name: 'Kind' }).selectOption('plan');
  await expect(runs).toHaveCount(1);
  await page.getByRole('combobox', { name: 'Kind' }).selectOption('load');
  await expect(runs).toHaveCount(2);
  await page.getByRole('searchbox', { name: 'Filter' }).fill('no such run');
  await expect(page.getByText('No run is like that.')).toBeVisible();
  await page.getByRole('searchbox', { name: 'Filter' }).fill('');
  await expect(runs).toHaveCount(2);
  for (const box of await page.getByRole('checkbox', { name: /Compare run/ }).all()) await box.check();
  await page.getByRole('button', { name: 'Compare two loads' }).click();
  await expect(page.getByText('Comparison', { exact: true })).toBeVisible();
  await check(page, faults);
  await page.getByRole('link', { name: 'All runs' }).click();
  await runs.first().getByRole('link').click();
  await expect(page.getByRole('heading', { name: 'Runs of the same command' })).toBeVisible();
  await expect(page.getByText('Run 3', { exact: true })).toBeVisible();
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Report (HTML)' }).click(),
  ]);
  expect(readFileSync(await saved.path(), 'utf8')).toContain('id="tenfold"');
  expect(faults).toEqual([]);
});

test('the page is small', () => {
  const size = (name: string) => gzipSync(readFileSync(`dist/${name}`), { level: 9 }).length;
  expect(size('page.js') + size('page.css')).toBeLessThanOrEqual(100_000);
});
