// Axes that the charts share.

import { scaleLinear, scaleLog } from 'd3-scale';

export interface Axis {
  (value: number): number;
  ticks: number[];
}

/** From 0 to at least `most`, over `range` pixels. */
export function fromZero(most: number, range: [number, number], ticks: number): Axis {
  const scale = scaleLinear([0, most > 0 ? most : 1], range).nice(ticks);
  return Object.assign((value: number) => scale(value), { ticks: scale.ticks(ticks) });
}

/** A few round values from 0 to `most`; of counts whole ones alone. */
export function roundTicks(most: number, isCount: boolean): number[] {
  const ticks = scaleLinear([0, most], [0, 1]).ticks(3);
  return isCount ? ticks.filter(Number.isInteger) : ticks;
}

/** Logarithmic, with ticks at 1, 2 and 5. */
export function logarithmic(least: number, most: number, range: [number, number]): Axis {
  const scale = scaleLog([least, most], range);
  const decades = Math.log10(most / least);
  const digits = decades > 3 ? [1] : [1, 2, 5];
  const isRound = (tick: number) =>
    digits.includes(Math.round(tick / 10 ** Math.floor(Math.log10(tick) + 1e-9)));
  const ticks = scale.ticks().filter(isRound);
  return Object.assign((value: number) => scale(Math.max(value, least * 0.5)), { ticks });
}

/** Where a label of this many letters stands so that it stays between both edges. */
export function placed(
  x: number,
  letters: number,
  from: number,
  to: number,
): { x: number; anchor: 'start' | 'middle' | 'end' } {
  const half = letters * 3.4;
  if (x - half < from) return { x: Math.max(from, Math.min(x, from)), anchor: 'start' };
  if (x + half > to) return { x: to, anchor: 'end' };
  return { x, anchor: 'middle' };
}

export interface Label {
  x: number;
  y: number;
  word: string;
}

/** Each label above, below or beside its point, where it covers no other; one without such a place is left out. */
export function spread(points: Label[], from: number, to: number): (Label | null)[] {
  const taken: [number, number, number, number][] = [];
  return points.map(({ x, y, word }) => {
    const half = word.length * 3.4 + 3;
    const beside = half + 9;
    const places: [number, number][] = [
      [x, y - 12],
      [x, y + 21],
      [x + beside, y + 4],
      [x - beside, y + 4],
    ];
    for (const [cx, cy] of places) {
      const box: [number, number, number, number] = [cx - half, cy - 12, cx + half, cy + 4];
      const covers = taken.some(([l, t, r, b]) => box[0] < r && box[2] > l && box[1] < b && box[3] > t);
      if (covers || box[0] < from || box[2] > to) continue;
      taken.push(box);
      return { x: cx, y: cy, word };
    }
    return null;
  });
}
