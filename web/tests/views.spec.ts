// What the walk does not meet: names that are markup, an address that asks for a token, a cost, and a stale tab.

import { expect, test } from '@playwright/test';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Transform } from 'node:stream';
import { accessible } from './axe';
import { HOSTILE, freePort, home, run, serve, status, up, watched } from './live';

const loopback = async () => `127.0.0.1:${await freePort()}`;

test('a name that is markup stays text in every view, and views say what fills them', async ({ page }) => {
  test.setTimeout(90_000);
  const place = home(`${HOSTILE}.cjs`);
  const served = await serve(place, await loopback(), ...up(1, 'node', `${HOSTILE}.cjs`));
  const faults = watched(page, served.url);
  await page.goto(`${served.url}#/plan`);
  await expect(page.getByText(/^tenfold plan/)).toBeVisible();
  await page.keyboard.press('4');
  await expect(page.getByText(/^tenfold cost/)).toBeVisible();
  await page.keyboard.press('5');
  await expect(page.getByText('No run was kept yet')).toBeVisible();

  const sizes = ['--cpus', '0.25,0.5', '--memory', '128MB', '--instances', '1,2', '-n', '60', '-c', '4'];
  await once(run(place, ['cost', ...sizes, '--p95', '500ms', '--', 'node', `${HOSTILE}.cjs`]), 'exit');
  await page.keyboard.press('4');
  await expect(page.getByText('Run 1', { exact: true })).toBeVisible();
  await expect(page.getByText(HOSTILE).first()).toBeVisible();
  await accessible(page);
  await page.keyboard.press('5');
  await expect(page.getByRole('main').getByRole('listitem')).toContainText([HOSTILE]);

  await page.keyboard.press('1');
  await page.getByLabel('Ramp up').fill('');
  await page.getByText('Advanced options').click();
  await page.getByLabel('Path').fill(`/fail?${HOSTILE.replaceAll(' ', '/')}`);
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('alert')).toContainText('/fail?<img/src=x');
  await page.getByLabel('Path').fill('/fail?onerror=1');
  await page.getByLabel('Method').fill('IMG');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('region', { name: 'Failures' })).toContainText('/fail?onerror=1');
  await page.getByRole('button', { name: 'Stop' }).click();
  await expect(page.getByText(/run 2 of the history/)).toBeVisible();
  expect(await page.locator('img').count()).toBe(0);
  expect(await page.title()).toBe('Run · app · Tenfold');
  // The refused path is an answer 400, which a browser tells its console.
  expect(faults.filter((fault) => !fault.includes('400'))).toEqual([]);
  await served.end();
});

test('an address that is not loopback asks for its token, and keeps it in the tab alone', async ({
  page,
}) => {
  const place = home();
  const served = await serve(place, `0.0.0.0:${await freePort()}`, ...up(1, 'node', 'app.cjs'));
  const token = readFileSync(`${place}/admin.token`, 'utf8').trim();
  await page.goto(served.url);
  await expect(status(page)).toHaveText('✕ no access');
  await accessible(page);
  await page.getByLabel('Token').fill('0000');
  await page.getByRole('button', { name: 'Show' }).click();
  await expect(page.getByLabel('Token')).toHaveValue('');
  await page.getByLabel('Token').fill(`${token}\n`);
  await page.getByRole('button', { name: 'Show' }).click();
  await expect(status(page)).toHaveText('● ready');
  const other = await page.context().newPage();
  await other.goto(served.url);
  await expect(status(other)).toHaveText('✕ no access');
  await other.goto('about:blank');
  await other.goto(`${served.url}#token=${token}`);
  await expect(status(other)).toHaveText('● ready');
  expect(other.url()).toBe(served.url);
  expect(await page.context().cookies()).toEqual([]);
  await served.end();
});

/** Passes everything on. Until it is switched, the server seems to have another version. */
function disguise(port: number) {
  let isOld = true;
  const open = new Set<IncomingMessage>();
  const proxy = createServer((asked, answered) => {
    const { method, url: path } = asked;
    const headers = { ...asked.headers, 'accept-encoding': 'identity' };
    const passed = request({ port, host: '127.0.0.1', method, path, headers }, (answer) => {
      open.add(answer);
      answered.writeHead(answer.statusCode ?? 500, answer.headers);
      const isData = /json|event-stream/.test(answer.headers['content-type'] ?? '');
      const disguised = new Transform({
        transform: (chunk: Buffer, _, done) => {
          const text = chunk.toString();
          done(null, isOld && isData ? text.replaceAll(/"version":"\d/g, '"version":"9') : chunk);
        },
      });
      answer.on('close', () => answer.readableEnded || answered.destroy());
      answer.pipe(disguised).pipe(answered);
    });
    asked.pipe(passed);
  });
  const update = () => {
    isOld = false;
    open.forEach((answer) => answer.destroy());
  };
  return { proxy, update };
}

test('a tab of another version loads itself anew', async ({ page }) => {
  const place = home();
  const admin = await loopback();
  const served = await serve(place, admin, ...up(1, 'node', 'app.cjs'));
  const { proxy, update } = disguise(Number(admin.split(':')[1]));
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  await page.goto(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}/#/instances`);
  await expect(status(page)).toHaveText('● ready');
  await Promise.all([page.waitForEvent('load'), update()]);
  await expect(page.getByRole('region', { name: 'Instances' })).toContainText('app-1');
  expect(new URL(page.url()).hash).toBe('#/instances');
  proxy.close();
  await served.end();
});
