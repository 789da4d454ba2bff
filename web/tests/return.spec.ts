// A tab that comes back: after it was hidden, after its server was replaced, and after a pause by hand.

import { type Page, expect, test } from '@playwright/test';
import { freePort, home, serve, status, up } from './live';

/** Hides the tab from its own point of view: a browser without a window has no other one to show. */
async function show(page: Page, isShown: boolean) {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, !isShown);
}

test('a tab that returns shows what runs now, and nothing of the process before', async ({ page }) => {
  test.setTimeout(60_000);
  const place = home();
  const admin = `127.0.0.1:${await freePort()}`;
  await page.clock.install();
  let served = await serve(place, admin, ...up(1, 'node', 'app.cjs'));
  await page.goto(served.url);
  await page.getByRole('button', { name: 'Start' }).click();
  const statistics = page.getByRole('region', { name: 'Statistics' });
  await expect(statistics).toContainText('Aggregated');

  await show(page, false);
  await page.clock.fastForward(31_000);
  await expect(status(page)).toHaveText('‖ page paused');
  await served.end();
  await show(page, true);
  await expect(status(page)).toHaveText('✕ connection lost');
  // The more tries fail, the longer it rests before the next one.
  for (let tries = 0; tries < 3; tries += 1) {
    const failed = page.waitForEvent('requestfailed');
    await page.clock.fastForward(10_000);
    await failed;
  }
  served = await serve(place, admin, ...up(2, 'node', 'app.cjs'));
  const answered = page.waitForResponse('**/api/events');
  await page.clock.fastForward(10_000);
  await answered;
  await expect(status(page)).toHaveText('● ready', { timeout: 3000 });
  await expect(statistics).toHaveCount(0);
  await page.getByRole('link', { name: 'Instances' }).click();
  await expect(page.getByRole('region', { name: 'Instances' }).locator('tbody tr')).toHaveCount(2);

  await page.getByRole('button', { name: 'Pause page' }).click();
  await show(page, false);
  await show(page, true);
  await expect(status(page)).toHaveText('‖ page paused');
  await page.getByRole('button', { name: 'Go on' }).click();
  await expect(status(page)).toHaveText('● ready');
  await served.end();
});

test('a connection without a sign of life is opened anew', async ({ page }) => {
  const served = await serve(home(), `127.0.0.1:${await freePort()}`, ...up(1, 'node', 'app.cjs'));
  await page.clock.install();
  await page.goto(served.url);
  await expect(status(page)).toHaveText('● ready');
  const asked = page.waitForRequest('**/api/events');
  // As if the machine had slept.
  await page.clock.fastForward(60_000);
  await asked;
  await expect(status(page)).toHaveText('● ready');
  await served.end();
});
