// The live page of the real program: what somebody does who knows Locust, and what goes wrong meanwhile.

import { AxeBuilder } from '@axe-core/playwright';
import { type Page, expect, test } from '@playwright/test';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { type Served, freePort, home, serve, watched } from './live';

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

async function serious(page: Page): Promise<unknown[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const bad = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return bad.map(({ id, nodes }) => [id, nodes[0]?.html]);
}

async function check(page: Page, faults: string[]) {
  expect(await serious(page)).toEqual([]);
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

test('the page is small', () => {
  const size = (name: string) => gzipSync(readFileSync(`dist/${name}`), { level: 9 }).length;
  expect(size('page.js') + size('page.css')).toBeLessThanOrEqual(100_000);
});
