// The pictures of the guides: `UPDATE_PICTURES=1 npm run browser` draws them anew, from what the tests see.

import type { Page } from '@playwright/test';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

export const drawing = process.env.UPDATE_PICTURES !== undefined;

/** Keeps the top of a page. With pngquant, the file has a third of the size. */
export async function draw(page: Page, name: string, height: number) {
  if (!drawing) return;
  const clip = { x: 0, y: 0, width: page.viewportSize()?.width ?? 0, height };
  const picture = await page.screenshot({ clip, fullPage: true });
  const small = spawnSync('pngquant', ['--nofs', '128', '-'], { input: picture });
  writeFileSync(`../docs/pictures/${name}.png`, small.status === 0 ? small.stdout : picture);
}
