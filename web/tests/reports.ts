// Reports of the real program, made of documents that it wrote when it measured.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
export const PROGRAM = process.env.TENFOLD ?? here('../../target/debug/tenfold');
export const FOLDER = here('../test-results/reports');

export function tenfold(...words: string[]): string {
  return execFileSync(PROGRAM, words, {
    encoding: 'utf8',
    env: { ...process.env, TENFOLD_STATE_DIR: FOLDER },
  });
}

export function report(name: string): string {
  return `${FOLDER}/${name}.html`;
}

/** What the measurements of a report are worth. */
export function verdicts(name: string): string[] {
  const of = (one: string) =>
    JSON.parse(readFileSync(here(`documents/${one}.json`), 'utf8')).verdict as string;
  return [...new Set((name === 'compare' ? ['before', 'after'] : [name]).map(of))];
}

const HOSTILE = '<img src=x onerror="document.title=1">';

/** A document with another name for what was measured, which looks like markup. */
function hostile(name: string): string {
  const document = JSON.parse(readFileSync(here(`documents/${name}.json`), 'utf8'));
  if (document.command) document.command = [HOSTILE, '</script><script>document.title=1</script>'];
  if (document.findings) document.findings[0].evidence = HOSTILE;
  if (document.target) document.target = HOSTILE;
  for (const named of document.by_name ?? []) named.name = `${HOSTILE}\u202e<!--<script>`;
  if (document.by_name) document.failures = [failure(HOSTILE)];
  const path = `${FOLDER}/hostile-${name}.json`;
  writeFileSync(path, JSON.stringify(document));
  return path;
}

const failure = (name: string) => ({
  method: name,
  name,
  error: name,
  occurrences: 1,
  first_seen: null,
  last_seen: null,
});

export default function setup() {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is not built: run cargo build, or set TENFOLD`);
  mkdirSync(FOLDER, { recursive: true });
  for (const name of ['plan', 'load', 'cost']) {
    tenfold('report', here(`documents/${name}.json`), '-o', report(name));
    tenfold('report', hostile(name), '-o', report(`hostile-${name}`));
  }
  tenfold('report', here('documents/capacity.json'), '-o', report('capacity'));
  const [a, b] = [here('documents/before.json'), here('documents/after.json')];
  tenfold('compare', a, b, '--report', report('compare'));
}
