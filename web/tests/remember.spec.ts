// What the page remembers, what fits, and what can be done from everywhere.

import { type Page, expect, test } from '@playwright/test';
import { readFileSync, writeFileSync } from 'node:fs';
import { accessible } from './axe';
import { type Served, freePort, home, serve, status, up, watched } from './live';

const loopback = async () => `127.0.0.1:${await freePort()}`;
const VIEWS = ['run', 'instances', 'plan', 'cost', 'history'];
const head = (page: Page) => page.getByRole('banner');
const view = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).click();
const options = (page: Page) => page.getByText('Advanced options').click();

/** Nothing is wider than the window. */
async function fits(page: Page) {
  const width = page.viewportSize()?.width ?? 0;
  await expect
    .poll(() => page.evaluate(() => document.documentElement.scrollWidth))
    .toBeLessThanOrEqual(width);
}

test('names of 62 letters fit at every width, and a cut table says so', async ({ page }) => {
  test.setTimeout(60_000);
  const [place, name] = [home(), 'n'.repeat(62)];
  const app = `[apps.${name}]\ncommand = ["node", "app.cjs"]\ninstances = 2\n[[routes]]\napp = "${name}"\n`;
  writeFileSync(`${place}/tenfold.toml`, app);
  const served = await serve(place, await loopback(), 'up', '--listen', '127.0.0.1:0');
  const faults = watched(page, served.url);
  await page.goto(served.url);
  await page.getByLabel('Ramp up').fill('');
  await options(page);
  await page.getByLabel('Path').fill(`/fail?${name}`);
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('region', { name: 'Failures' })).toContainText(name);
  for (const width of [375, 768, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    for (const name of VIEWS) {
      await page.goto(`${served.url}#/${name}`);
      await expect(head(page).getByRole('button', { name: 'Stop' })).toBeVisible();
      await expect(head(page).getByText('requests/s')).toBeVisible();
      await fits(page);
    }
  }
  await page.setViewportSize({ width: 768, height: 900 });
  await view(page, 'Instances');
  await expect(page.getByText('Scroll for more columns →')).toBeVisible();
  const table = page.getByRole('region', { name: 'Instances' });
  await table.getByRole('button', { name: 'Drain' }).first().click();
  const box = async (button: string) =>
    (await table.getByRole('button', { name: button, exact: true }).first().boundingBox()) ?? {
      y: 0,
      height: 0,
    };
  const [yes, output, restart] = [await box('Yes, drain'), await box('Output'), await box('Restart')];
  expect(yes.y).toBeGreaterThanOrEqual(output.y + output.height);
  expect(restart.y).toBe(output.y);
  await page.keyboard.press('Escape');
  await expect(table.getByRole('button', { name: 'Drain' }).first()).toBeFocused();
  expect(faults).toEqual([]);
  await served.end();
});

test('form, script, range and route outlive a reload, the tab and a stop', async ({ page, context }) => {
  test.setTimeout(60_000);
  const [place, admin] = [home(), await loopback()];
  let served = await serve(place, admin, ...up(1, 'node', 'app.cjs'));
  await page.goto(served.url);
  await page.getByLabel('Number of users').fill('7');
  await options(page);
  await page.getByLabel('Headers').fill('X-Shop: 1\nAuthorization: Bearer secret');
  await page.getByLabel('Body').fill('{"a": 1}');
  await page.getByRole('combobox', { name: 'Show' }).selectOption('this run');
  await page.getByText('Script', { exact: true }).click();
  await page.getByLabel('Artillery script').fill('scenarios: []');
  await view(page, 'Run');

  const same = async (tab: Page) => {
    await expect(tab.getByLabel('Number of users')).toHaveValue('7');
    await expect(tab.getByLabel('Artillery script')).toHaveValue('scenarios: []');
    await expect(tab.getByRole('combobox', { name: 'Show' })).toHaveValue('-1');
    await tab.getByLabel('Artillery script').fill('');
    await options(tab);
    await expect(tab.getByLabel('Headers')).toHaveValue('X-Shop: 1');
    await expect(tab.getByLabel('Body')).toHaveValue('{"a": 1}');
    await tab.getByLabel('Artillery script').fill('scenarios: []');
  };
  await page.reload();
  await same(page);
  await view(page, 'History');
  await expect(page.getByText('No run was kept yet')).toBeVisible();
  await served.end();
  served = await serve(place, admin, ...up(1, 'node', 'app.cjs'));
  const other = await context.newPage();
  await other.goto(served.url);
  await expect(other.getByRole('link', { name: 'History' })).toHaveAttribute('aria-current', 'page');
  await view(other, 'Run');
  await same(other);
  await other.goto(`${served.url}#/nonsense`);
  await expect(other.getByText('There is no view #/nonsense: choose one above.')).toBeVisible();
  await served.end();
});

test('a load is run again, its broken goal is an alert, and Stop is in each view', async ({ page }) => {
  test.setTimeout(60_000);
  const served = await serve(home(), await loopback(), ...up(1, 'node', 'app.cjs'));
  const faults = watched(page, served.url);
  await page.goto(served.url);
  await page.getByLabel('Number of users').fill('3');
  await page.getByLabel('Ramp up').fill('');
  await options(page);
  await page.getByLabel('Goal: 95 %').fill('1');
  await page.getByRole('button', { name: 'Start' }).click();
  for (const name of ['Instances', 'Plan', 'Cost', 'History', 'Run']) {
    await view(page, name);
    await expect(head(page).getByRole('alert')).toContainText(
      'Goal missed: 5 % of the answers take longer than 1.00 ms.',
    );
    await expect(head(page).locator('dl')).toContainText(/users\s*3/);
    await expect(head(page).getByRole('button', { name: 'Stop' })).toBeVisible();
  }
  await accessible(page);
  await view(page, 'Instances');
  await head(page).getByRole('button', { name: 'Stop' }).click();
  await expect(head(page).getByRole('alert')).toHaveCount(0);
  await page.reload();
  await view(page, 'Run');
  await page.getByRole('button', { name: 'Run again' }).click();
  await expect(head(page).locator('dl')).toContainText(/users\s*3/);
  await head(page).getByRole('button', { name: 'Stop' }).click();
  await expect(page.getByText(/run 2 of the history/)).toBeVisible();
  expect(faults).toEqual([]);
  await served.end();
});

test('a drained instance is put back, and a reload shows one row for each', async ({ page }) => {
  test.setTimeout(60_000);
  const served = await serve(home(), await loopback(), ...up(2, 'node', 'app.cjs'));
  await page.goto(`${served.url}#/instances`);
  const table = page.getByRole('region', { name: 'Instances' });
  const rows = table.locator('tbody tr:not(.more)');
  await expect(rows).toHaveCount(2);
  await table.getByRole('button', { name: 'Drain' }).first().click();
  await page.getByRole('button', { name: 'Yes, drain' }).click();
  const back = table.getByRole('button', { name: 'Put back' });
  await expect(back).toHaveCount(1, { timeout: 15_000 });
  await back.click();
  await page.getByRole('button', { name: 'Yes, put back' }).click();
  await expect(page.getByText(/^app-\d gets requests again/)).toBeVisible();
  await expect(back).toHaveCount(0);
  // Two processes have one name meanwhile.
  const counts = new Set<number>();
  await page.exposeFunction('seen', (count: number) => counts.add(count));
  await page.evaluate(() => {
    const count = () => document.querySelectorAll('tbody tr:not(.more)').length;
    const { seen } = window as unknown as { seen: (count: number) => void };
    new MutationObserver(() => seen(count())).observe(document.body, { childList: true, subtree: true });
  });
  await page.getByRole('button', { name: 'Rolling reload' }).click();
  await page.getByRole('button', { name: 'Yes, reload' }).click();
  await expect(page.getByText('all instances were replaced')).toBeVisible({ timeout: 30_000 });
  expect([...counts]).toEqual([2]);
  await served.end();
});

test('a plan starts from the page, is stopped by Stop, and is read at its end', async ({ page }) => {
  test.setTimeout(120_000);
  const served: Served = await serve(home(), await loopback(), ...up(1, 'node', 'app.cjs'));
  const faults = watched(page, served.url);
  await page.goto(`${served.url}#/plan`);
  await page.getByLabel('Requests a second', { exact: true }).fill('30');
  await page.getByLabel('Goal: 95 %').fill('500');
  await page.getByLabel('Most instances').fill('2');
  await page.getByLabel('Time to measure').fill('8s');
  await page.getByRole('button', { name: 'Start plan' }).click();
  await expect(page.getByRole('region', { name: 'Progress' })).toContainText('--rate=30 --p95=500ms');
  await view(page, 'Run');
  // A load would disturb it.
  await expect(page.getByRole('button', { name: 'Start', exact: true })).toHaveCount(0);
  await head(page).getByRole('button', { name: 'Stop' }).click();
  await view(page, 'Plan');
  await expect(page.getByRole('button', { name: 'Start plan' })).toBeVisible({ timeout: 30_000 });
  await accessible(page);
  await page.reload();
  await expect(page.getByLabel('Most instances')).toHaveValue('2');
  await page.getByRole('button', { name: 'Start plan' }).click();
  await expect(page.getByRole('list', { name: /Requests a second of each/ })).toBeVisible({
    timeout: 30_000,
  });
  await expect(page.getByRole('button', { name: 'Start plan' })).toBeVisible({ timeout: 60_000 });
  await expect(page.getByText('Run 2', { exact: true })).toBeVisible({ timeout: 15_000 });
  await expect(page.getByRole('region', { name: 'Answer' }).getByRole('heading')).toContainText(/instance/);
  await expect(status(page)).toHaveText('● ready');
  expect(faults).toEqual([]);
  await served.end();
});

test('a wrong token is said', async ({ page }) => {
  const place = home();
  const served = await serve(place, `0.0.0.0:${await freePort()}`, ...up(1, 'node', 'app.cjs'));
  await page.goto(served.url);
  await expect(page.getByLabel('Token')).toBeVisible();
  await expect(page.getByRole('alert')).toHaveCount(0);
  await page.getByLabel('Token').fill('0000');
  await page.getByRole('button', { name: 'Show' }).click();
  await expect(page.getByRole('alert')).toContainText('This token is not the one of this address');
  await page.getByLabel('Token').fill(readFileSync(`${place}/admin.token`, 'utf8'));
  await page.getByRole('button', { name: 'Show' }).click();
  await expect(status(page)).toHaveText('● ready');
  await served.end();
});
