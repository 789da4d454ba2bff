// Reports of the real program in a browser: both themes, a phone, paper, a keyboard, and no script.

import { type Browser, type Page, expect, test } from '@playwright/test';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { accessible } from './axe';
import { report, verdicts } from './reports';

const NAMES = ['plan', 'capacity', 'load', 'cost', 'compare'];
const HOSTILE = ['hostile-plan', 'hostile-load', 'hostile-cost'];

/** Fails on what a page that needs nothing else never does. */
function watched(page: Page): string[] {
  const faults: string[] = [];
  page.on('console', (message) => faults.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith('file:') || request.resourceType() !== 'document')
      faults.push(`request: ${request.url()}`);
  });
  return faults;
}

async function open(page: Page, name: string): Promise<string[]> {
  const faults = watched(page);
  await page.goto(`file://${report(name)}`);
  await expect(page.locator('main h1')).toBeVisible();
  return faults;
}

const width = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth);

for (const colorScheme of ['light', 'dark'] as const) {
  for (const name of NAMES) {
    test(`${name} is accessible and quiet in a ${colorScheme} theme`, async ({ browser }) => {
      const context = await browser.newContext({ colorScheme, viewport: { width: 1120, height: 900 } });
      const page = await context.newPage();
      const faults = await open(page, name);
      await accessible(page);
      expect(faults).toEqual([]);
      await context.close();
    });
  }
}

for (const name of HOSTILE) {
  test(`names of ${name} stay text`, async ({ page }) => {
    const faults = await open(page, name);
    const more = page.locator('details summary, th button').first();
    if (await more.isVisible()) await more.click();
    expect(faults).toEqual([]);
    expect(await page.title()).not.toBe('1');
    expect(await page.locator('img').count()).toBe(0);
    await expect(page.getByText('<img src=x onerror="document.title=1">').first()).toBeVisible();
  });
}

for (const name of [...NAMES, ...HOSTILE]) {
  test(`${name} fits a phone`, async ({ browser }) => {
    const page = await browser.newPage({ viewport: { width: 320, height: 640 } });
    await open(page, name);
    expect(await width(page)).toBeLessThanOrEqual(320);
    const cut = await page.evaluate(() =>
      [...document.querySelectorAll('svg[role=img] text')]
        .map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }))
        .filter(({ box }) => box.left < -1 || box.right > 321)
        .map(({ text }) => text),
    );
    expect(cut).toEqual([]);
    await page.close();
  });
}

for (const name of NAMES) {
  test(`${name} is read without JavaScript`, async ({ browser }) => {
    const plain = await browser.newPage({ javaScriptEnabled: false });
    await plain.goto(`file://${report(name)}`);
    const answer = await plain.locator('h1').innerText();
    await plain.close();
    const page = await browser.newPage();
    await open(page, name);
    expect(answer).toBe(await page.locator('h1').innerText());
    await page.close();
  });

  test(`labels of ${name} do not overlap`, async ({ browser }) => {
    for (const size of [1120, 700, 320]) {
      const page = await browser.newPage({ viewport: { width: size, height: 900 } });
      await open(page, name);
      expect(await overlaps(page), `at ${size} px`).toEqual([]);
      await page.close();
    }
  });
}

/** Pairs of labels in one chart that cover each other. */
function overlaps(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    for (const svg of document.querySelectorAll('svg[role=img]')) {
      const labels = [...svg.querySelectorAll('text')].map((label) => ({
        text: label.textContent,
        box: label.getBoundingClientRect(),
      }));
      labels.forEach((a, index) =>
        labels.slice(index + 1).forEach((b) => {
          const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
          const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
          if (across > 1 && down > 3) found.push(`${a.text} / ${b.text}`);
        }),
      );
    }
    return found;
  });
}

test('a plan prints with its answer and chart on page one', async ({ browser }) => {
  const { pages, text } = await printed(browser, 'plan');
  expect(pages).toBeLessThanOrEqual(3);
  expect(text).toMatch(/^Run \d+ instances: they hold the goal/);
});

test('a load prints with its charts in light colours', async ({ browser }) => {
  const page = await browser.newPage({ colorScheme: 'dark' });
  await open(page, 'load');
  await page.emulateMedia({ media: 'print' });
  const ground = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  expect(ground).toBe('rgb(255, 255, 255)');
  const widths = await page
    .locator('.plot canvas')
    .evaluateAll((plots) => plots.map((plot) => plot.clientWidth));
  expect(widths.length).toBe(3);
  expect(Math.max(...widths)).toBeLessThanOrEqual(680);
  // A head that sorts is a word on paper.
  expect(await page.locator('button:not(th button):visible').count()).toBe(0);
  const drawn = await page
    .locator('.plot canvas')
    .first()
    .evaluate((plot: HTMLCanvasElement) => {
      const pixels = plot.getContext('2d')?.getImageData(0, 0, plot.width, plot.height).data ?? [];
      const of = ([r, g, b]: number[]) =>
        Array.from({ length: pixels.length / 4 }, (_, at) => at * 4).filter(
          (at) => pixels[at] === r && pixels[at + 1] === g && pixels[at + 2] === b && pixels[at + 3] === 255,
        ).length;
      return { light: of([0x1a, 0x3b, 0x79]), dark: of([0x49, 0x82, 0xe7]) };
    });
  expect(drawn.light).toBeGreaterThan(20);
  expect(drawn.dark).toBe(0);
  await page.close();
});

/** The number of pages, and the visible text of the first one's height on A4. */
async function printed(browser: Browser, name: string): Promise<{ pages: number; text: string }> {
  // 182 mm by 269 mm at 96 dots an inch: A4 without its margins.
  const page = await browser.newPage({ viewport: { width: 688, height: 1016 } });
  await open(page, name);
  await page.emulateMedia({ media: 'print' });
  const bottom = await page
    .locator('h1, figure')
    .evaluateAll((parts) => Math.max(...parts.map((part) => part.getBoundingClientRect().bottom)));
  expect(bottom).toBeLessThanOrEqual(1016);
  const text = await page.locator('h1').innerText();
  const pdf = await page.pdf({ format: 'A4', printBackground: true });
  const pages = pdf.toString('latin1').match(/\/Type\s*\/Page\b/g)?.length ?? 0;
  await page.close();
  return { pages, text };
}

test('the curve is read by keyboard', async ({ page }) => {
  await open(page, 'plan');
  const slider = page.getByRole('slider', { name: 'Number of instances to read' });
  await slider.focus();
  await page.keyboard.press('Home');
  await expect(slider).toHaveAttribute('aria-valuetext', /^1 instance: predicted .* p95 grows/);
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('.readout')).toHaveText(/^2 instances: /);
});

test('a legend switches lines, and a chart is saved as CSV and PNG', async ({ page }) => {
  const faults = await open(page, 'load');
  const figure = page.locator('figure', { hasText: 'Users and requests' }).first();
  const plot = figure.getByRole('img');
  await expect(plot).toHaveAttribute('aria-label', /users .*under way /);
  const line = figure.getByRole('button', { name: /^users/ });
  await line.click();
  await expect(line).toHaveAttribute('aria-pressed', 'false');
  await expect(plot).not.toHaveAttribute('aria-label', /: users /);
  const saved = async (name: string) => {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      figure.getByRole('button', { name, exact: true }).click(),
    ]);
    return { name: file.suggestedFilename(), content: readFileSync(await file.path()) };
  };
  const table = await saved('CSV');
  expect(table.name).toBe('tenfold-users-and-requests-under-way.csv');
  expect(table.content.toString()).toMatch(/^seconds,under way\r\n[\d.]+,/);
  const picture = await saved('PNG');
  expect(picture.content.subarray(1, 4).toString()).toBe('PNG');
  expect(picture.content.length).toBeGreaterThan(3000);
  expect(faults.filter((fault) => !fault.includes('blob:'))).toEqual([]);
});

test('a moment is read in all charts over time', async ({ page }) => {
  await open(page, 'load');
  const slider = page.getByRole('slider', { name: /Moment to read/ });
  await slider.focus();
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
  await expect(slider).toHaveAttribute('aria-valuetext', /^At \d+:\d\d: requests .*\/s, .*p50 /);
  await expect(page.locator('figcaption strong').first()).toBeVisible();
  await page.locator('.plot').first().scrollIntoViewIfNeeded();
  const plot = await page.locator('.plot').first().boundingBox();
  if (!plot) throw new Error('there is a plot');
  await page.mouse.move(plot.x + 200, plot.y + 60);
  await page.mouse.down();
  await page.mouse.move(plot.x + 400, plot.y + 60, { steps: 4 });
  await page.mouse.up();
  const all = page.getByRole('button', { name: 'Show all of the run' });
  await expect(all).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(all).toBeHidden();
});

test('statistics are sorted by a click on a head', async ({ page }) => {
  await open(page, 'load');
  const table = page.getByRole('region', { name: 'Statistics' });
  const names = () => table.locator('tbody .name').allInnerTexts();
  const slowest = table.getByRole('button', { name: '95%ile (ms)' });
  await slowest.click();
  const downwards = await names();
  expect(downwards.length).toBeGreaterThan(2);
  await slowest.click();
  expect(await names()).toEqual(downwards.reverse());
  await expect(table.locator('th[aria-sort=ascending]')).toHaveText(/95%ile/);
  await expect(table.locator('tfoot')).toContainText('Aggregated');
});

test('forced colours keep the charts', async ({ browser }) => {
  const page = await browser.newPage({ forcedColors: 'active' });
  const faults = await open(page, 'plan');
  await expect(page.locator('svg[role=img] .model').first()).toBeVisible();
  expect(faults).toEqual([]);
  await page.close();
});

test('reports are small', () => {
  const size = (name: string) => statSync(report(name)).size;
  for (const name of ['plan', 'capacity', 'cost', 'compare']) expect(size(name)).toBeLessThanOrEqual(250_000);
  expect(size('load')).toBeLessThanOrEqual(300_000);
});

// `UPDATE_PICTURES=1 npm run browser` draws those of the guides anew.
for (const [name, scheme, size] of [
  ['plan', 'light', 1000],
  ['load', 'dark', 1000],
  ['compare', 'light', 1000],
  ['plan', 'dark', 320],
] as const) {
  test(`${name} can be drawn for the guides, ${scheme}, ${size} px`, async ({ browser }) => {
    const context = await browser.newContext({ colorScheme: scheme, viewport: { width: size, height: 900 } });
    const page = await context.newPage();
    await open(page, name);
    const clip = { x: 0, y: 0, width: size, height: size === 320 ? 780 : 1080 };
    const picture = await page.screenshot({ clip, fullPage: true });
    expect(picture.length).toBeGreaterThan(10_000);
    const suffix = size === 320 ? '-phone' : '';
    if (process.env.UPDATE_PICTURES)
      expect(verdicts(name), 'a picture shows a valid measurement').toEqual(['valid']);
    if (process.env.UPDATE_PICTURES) writeFileSync(`../docs/pictures/report-${name}${suffix}.png`, picture);
    await context.close();
  });
}

test('the slider of a plan stands under its counts, and no upright crosses a title', async ({ page }) => {
  await page.goto(`file://${report('plan')}`);
  const chart = page.getByRole('img', { name: /^Throughput and p95 over instances/ });
  const slider = page.getByRole('slider', { name: 'Number of instances to read' });
  for (const width of [375, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    for (const key of ['Home', 'End']) {
      await slider.press(key);
      const [cursor, place] = [await chart.locator('.cursor').boundingBox(), await slider.boundingBox()];
      const thumb = key === 'Home' ? (place?.x ?? 0) + 8 : (place?.x ?? 0) + (place?.width ?? 0) - 8;
      expect(Math.abs((cursor?.x ?? 0) + (cursor?.width ?? 0) / 2 - thumb)).toBeLessThan(2);
    }
    const gap = await chart.locator('.cursor').getAttribute('d');
    expect(gap).toMatch(/^M.*V.*M.*V/);
  }
});

test('without JavaScript, words of a report are whole and nothing is wider than the window', async ({
  browser,
}) => {
  for (const width of [375, 768, 1280]) {
    const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width, height: 900 } });
    const page = await context.newPage();
    for (const name of ['plan', 'load', 'cost']) {
      await page.goto(`file://${report(name)}`);
      // A cell's words, each in one line.
      const broken = await page.locator('table').evaluateAll((tables) =>
        tables.flatMap((table) => {
          const walker = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
          const found: string[] = [];
          for (let text = walker.nextNode(); text; text = walker.nextNode()) {
            for (const { index, 0: word } of (text.textContent ?? '').matchAll(/\S{1,40}/g)) {
              const range = document.createRange();
              range.setStart(text, index);
              range.setEnd(text, index + word.length);
              if (/^[\w./%]+$/.test(word) && range.getClientRects().length > 1) found.push(word);
            }
          }
          return found;
        }),
      );
      expect(broken).toEqual([]);
      const main = await page.locator('main.plain').boundingBox();
      expect((main?.x ?? 0) + (main?.width ?? 0)).toBeLessThanOrEqual(width);
    }
    await context.close();
  }
});
