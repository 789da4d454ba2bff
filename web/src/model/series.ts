// A load's windows as columns, one value a window, for charts over time.

import type { Load, Timeline, Window } from './bindings';

export type Column = (number | null)[];

/** The least and the greatest value where a point stands for several. */
export interface Ends {
  least: Column;
  most: Column;
}

/** What a load's charts draw. */
export type Measure = 'requests' | 'failures' | 'p50' | 'p95' | 'p99' | 'users' | 'inFlight';

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
  /** Where windows were put together. */
  ends: Record<Measure, Ends> | null;
  /** Seconds that the warm-up took. */
  warmUpTo: number;
}

type Row = [number, ...(number | null)[]];

/** A window that is missing is a gap. */
export function seriesOf(load: Load): Series {
  return load.timeline ? seriesOfSteps(load, load.timeline) : seriesOfWindows(load);
}

/** A step that does not follow the one before comes after a gap. */
function seriesOfSteps(load: Load, timeline: Timeline): Series {
  const { start_s: start, seconds } = timeline;
  const places: (number | null)[] = [];
  const at: number[] = [];
  start.forEach((begin, step) => {
    const end = step > 0 ? (start[step - 1] ?? 0) + (seconds[step - 1] ?? 0) : begin;
    const length = seconds[step] ?? 0;
    if (begin > end + 0.5 * length) {
      places.push(null);
      at.push(end + 1e-3);
    }
    places.push(step);
    at.push(begin + length / 2);
  });
  const placed = (column: Column): Column =>
    places.map((step) => (step === null ? null : (column[step] ?? null)));
  const of = (
    name: keyof Timeline & ('requests' | 'failures' | 'p50' | 'p95' | 'p99' | 'users' | 'in_flight'),
  ) => {
    const { least, mean, most } = timeline[name];
    return { mean: placed(mean), ends: { least: placed(least), most: placed(most) } };
  };
  const [requests, failures, p50, p95] = [of('requests'), of('failures'), of('p50'), of('p95')];
  const [p99, users, inFlight] = [of('p99'), of('users'), of('in_flight')];
  return {
    at,
    requests: requests.mean,
    failures: failures.mean,
    p50: p50.mean,
    p95: p95.mean,
    p99: p99.mean,
    users: users.mean,
    inFlight: inFlight.mean,
    ends: {
      requests: requests.ends,
      failures: failures.ends,
      p50: p50.ends,
      p95: p95.ends,
      p99: p99.ends,
      users: users.ends,
      inFlight: inFlight.ends,
    },
    warmUpTo: warmUpOf(load),
  };
}

function warmUpOf(load: Load): number {
  const warm = load.windows.filter((window) => window.stage === 'warm_up').at(-1);
  return warm ? warm.start_s + warm.seconds : 0;
}

function seriesOfWindows(load: Load): Series {
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
  return {
    at: rows.map((row) => row[0]),
    requests: column(1),
    failures: column(2),
    p50: column(3),
    p95: column(4),
    p99: column(5),
    users: column(6),
    inFlight: column(7),
    ends: null,
    warmUpTo: warmUpOf(load),
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

/** The least and the largest value of some columns from one index to another; null without any. */
export function extremes(columns: Column[], from: number, to: number): [number, number] | null {
  let [least, most] = [Infinity, -Infinity];
  for (let at = from; at <= to; at += 1) {
    for (const column of columns) {
      const value = column[at] ?? null;
      if (value === null) continue;
      least = Math.min(least, value);
      most = Math.max(most, value);
    }
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
