// A strip with one cell for each instance, as a few paths: a thousand elements would be laid out and kept.

import type { Row } from './instances';

export type Tone = 'ready' | 'fails' | 'away';

export interface Strip {
  height: number;
  /** As many as are ready, fail, and get no requests. */
  counts: Record<Tone, number>;
  /** The cells of each tone. */
  frames: Record<Tone, string>;
  /** How full they are. */
  fills: Record<Tone, string>;
  crosses: string;
  /** Of all of them together. */
  used: number;
  slots: number;
  /** In the order of the cells. */
  rows: Row[];
}

export const CELL = { width: 14, height: 20 };
const GAP = 3;
const FRAME = 'h8.5a2,2 0 0 1 2,2v14.5a2,2 0 0 1 -2,2h-8.5a2,2 0 0 1 -2,-2v-14.5a2,2 0 0 1 2,-2z';
const CROSS = 'l8,8m0,-8l-8,8';

export function toneOf(row: Row): Tone {
  if (row.state !== 'ready') return 'away';
  return (row.failureRate ?? 0) > 0 ? 'fails' : 'ready';
}

/** The strip of these instances in their order, in a place that is so wide. */
export function stripOf(rows: Row[], width: number): Strip {
  const perLine = cellsIn(width);
  const counts = { ready: 0, fails: 0, away: 0 };
  const frames = { ready: '', fails: '', away: '' };
  const fills = { ready: '', fails: '', away: '' };
  let crosses = '';
  let [used, slots] = [0, 0];
  rows.forEach((row, at) => {
    const [x, y] = cornerOf(at, perLine);
    const tone = toneOf(row);
    counts[tone] += 1;
    used += row.inFlight ?? 0;
    slots += row.slots ?? 0;
    frames[tone] += `M${x + 2.75},${y + 0.75}${FRAME}`;
    if (tone === 'away') crosses += `M${x + 3},${y + 6}${CROSS}`;
    else if (row.slots && row.inFlight) {
      const full = Number((15 * Math.min(1, row.inFlight / row.slots)).toFixed(1));
      fills[tone] += `M${x + 2.5},${y + 17.5}h9v-${full}h-9z`;
    }
  });
  const lines = Math.ceil(rows.length / perLine);
  const height = Math.max(0, lines * (CELL.height + GAP) - GAP);
  return { height, counts, frames, fills, crosses, used, slots, rows };
}

/** Which cell a point is in; null between cells and behind the last. */
export function cellAt(x: number, y: number, count: number, width: number): number | null {
  const perLine = cellsIn(width);
  const column = Math.floor(x / (CELL.width + GAP));
  const at = Math.floor(y / (CELL.height + GAP)) * perLine + column;
  if (x < 0 || y < 0 || column >= perLine || at >= count) return null;
  const [left, top] = cornerOf(at, perLine);
  return x - left <= CELL.width && y - top <= CELL.height ? at : null;
}

/** The upper left corner of a cell. */
export function cornerOf(at: number, perLine: number): [number, number] {
  return [(at % perLine) * (CELL.width + GAP), Math.floor(at / perLine) * (CELL.height + GAP)];
}

export function cellsIn(width: number): number {
  return Math.max(1, Math.floor((width + GAP) / (CELL.width + GAP)));
}
