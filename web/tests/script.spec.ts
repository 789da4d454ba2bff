// A script in the form of the page: typed, mended where it is wrong, and started.

import { expect, test } from '@playwright/test';
import { accessible } from './axe';
import { freePort, home, serve, up, watched } from './live';
import { draw } from './pictures';

const SCRIPT = `config: {target: "http://shop.example"}
scenarios:
  - name: shop
    flow:
      - get: {url: /, name: home}
      - post: {url: /cart, name: fill the cart, json: {id: 1}}
`;

for (const [scheme, width] of [
  ['light', 1120],
  ['dark', 320],
] as const) {
  test(`a script is mended, started, and told by its names, ${scheme}, ${width} px`, async ({ browser }) => {
    const served = await serve(home(), `127.0.0.1:${await freePort()}`, ...up(1, 'node', 'app.cjs'));
    const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
    const page = await context.newPage();
    const faults = watched(page, served.url);
    const fits = async () => {
      await accessible(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(wide).toBeLessThanOrEqual(width);
    };
    await page.goto(served.url);
    await page.getByText('Script', { exact: true }).click();
    const field = page.getByLabel(/as an Artillery script/);
    await field.fill(SCRIPT.replace('- post:', '- past:'));
    await page.getByRole('button', { name: 'Start' }).click();
    const fault = page.getByRole('alert').filter({ hasText: /./ });
    await expect(fault).toHaveText("In the script, line 6: there is no 'past'; did you mean 'post'?");
    await expect(field).toBeFocused();
    const selected = () => page.evaluate(() => getSelection()?.toString());
    expect(await selected()).toBe(SCRIPT.split('\n')[5]?.replace('- post:', '- past:'));
    await fits();
    if (width > 400) await draw(page, 'live-script', 680);

    await field.fill(SCRIPT.replace('{id: 1}', '{of: "{{ $env.HOME }}"}'));
    await expect(fault).toHaveCount(0);
    await page.getByRole('button', { name: 'Start' }).click();
    await expect(fault).toContainText('reads no environment variables');

    const file = { name: 'shop.yml', mimeType: 'text/yaml', buffer: Buffer.from(SCRIPT) };
    await page.getByLabel('take it from a file').setInputFiles(file);
    await expect(field).toHaveValue(SCRIPT);
    await page.getByLabel('Number of users').fill('2');
    await page.getByLabel('Ramp up').fill('');
    await page.getByRole('button', { name: 'Start' }).click();
    const statistics = page.getByRole('region', { name: 'Statistics' });
    await expect(statistics).toContainText('home');
    await expect(statistics).toContainText('fill the cart');
    await expect(page.getByText(/^SCRIPT shop on http:/)).toBeVisible();
    await fits();

    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByLabel('What the phases of the script say').check();
    await page.getByRole('button', { name: 'Start' }).click();
    await expect(page.getByText('1 session in 1 s')).toBeVisible();
    await expect(page.getByText(/run 2 of the history/)).toBeVisible();
    // A refusal is an answer 400, which a browser tells its console.
    expect(faults.filter((fault) => !fault.includes('400'))).toEqual([]);
    await context.close();
    await served.end();
  });
}
