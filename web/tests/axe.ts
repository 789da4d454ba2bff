// What axe finds in a page.

import { AxeBuilder } from '@axe-core/playwright';
import { type Page, expect } from '@playwright/test';

/** Fails on what is serious or critical. */
export async function accessible(page: Page) {
  // The other mode opens a second page for each look.
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
  const bad = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  expect(bad.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
}
