// A load's windows as columns, one value a window, for charts over time.

import type { Load, Window } from './bindings';

export type Column = (number | null)[];

export interface Series {
  /** Seconds since the beginning, in the middle of each window. */
  at: number[];
  requests: Column;
  failures: Column;
  p50: Column;
  p95: Column;
  p99: Column;
  users: Column;
  inFlight: Column;
  /** Seconds that the warm-up took. */
  warmUpTo: number;
}

type Row = [number, ...(number | null)[]];

/** A window that is missing is a gap. */
export function seriesOf(load: Load): Series {
  const rows: Row[] = [];
  let end: number | null = null;
  for (const window of load.windows) {
    if (end !== null && window.start_s > end + 0.5 * window.seconds) {
      rows.push([end + 1e-3, null, null, null, null, null, null, null]);
    }
    rows.push(rowOf(window));
    end = window.start_s + window.seconds;
  }
  const column = (index: number): Column => rows.map((row) => row[index] ?? null);
  const warm = load.windows.filter((window) => window.stage === 'warm_up').at(-1);
  return {
    at: rows.map((row) => row[0]),
    requests: column(1),
    failures: column(2),
    p50: column(3),
    p95: column(4),
    p99: column(5),
    users: column(6),
    inFlight: column(7),
    warmUpTo: warm ? warm.start_s + warm.seconds : 0,
  };
}

function rowOf(window: Window): Row {
  const times = window.response_ms;
  const failures = window.seconds > 0 ? window.errors / window.seconds : null;
  return [
    window.start_s + window.seconds / 2,
    window.throughput,
    failures,
    times.p50,
    times.p95,
    times.p99,
    window.users,
    window.in_flight,
  ];
}

/** The least and the largest value from one index to another; null without any. */
export function extremes(column: Column, from: number, to: number): [number, number] | null {
  let [least, most] = [Infinity, -Infinity];
  for (let at = from; at <= to; at += 1) {
    const value = column[at] ?? null;
    if (value === null) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return least <= most ? [least, most] : null;
}

/** Index of the moment that is nearest, among rising ones. */
export function nearest(at: number[], moment: number): number {
  let [low, high] = [0, at.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((at[middle] ?? 0) <= moment) low = middle;
    else high = middle;
  }
  const isLow = moment - (at[low] ?? 0) <= (at[high] ?? 0) - moment;
  return Math.max(0, isLow ? low : high);
}
