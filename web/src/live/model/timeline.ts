// The values of the last hour in columns, one for each series, in their units.

import type { LiveHistory, Series, SeriesName, Tick, Tier } from '../../model/bindings';
import type { Column, Ends } from '../../model/series';

export interface Timeline {
  series: Series[];
  /** Seconds since 1970, rising. */
  at: number[];
  /** In the order of the series: values, or means where a moment stands for several. Absent is null, and never 0. */
  columns: Column[];
  /** Of each series. */
  ends: Ends[];
}

const HOUR = 3600;

/** What was before the page came. Of ten old ticks it keeps mean, least and most, so that no dip or peak is lost. */
export function timelineOf(history: LiveHistory): Timeline {
  const { series, old, recent } = history;
  const all = (take: (tier: Tier) => (number | null)[][]) =>
    series.map(({ per }, index) =>
      [old, recent]
        .flatMap((tier) => take(tier)[index] ?? tier.mean[index] ?? [])
        .map((value) => scaled(value, per)),
    );
  const [least, most] = [all((tier) => tier.min), all((tier) => tier.max)];
  return {
    series,
    at: [...old.time_ms, ...recent.time_ms].map((ms) => ms / 1000),
    columns: all((tier) => tier.mean),
    ends: series.map((_, index) => ({ least: least[index] ?? [], most: most[index] ?? [] })),
  };
}

/** With what came since. A longer silence is a gap, and what is older than an hour goes. */
export function extended(timeline: Timeline, ticks: Tick[], tickMs: number): Timeline {
  const at = [...timeline.at];
  const columns = timeline.columns.map((column) => [...column]);
  const ends = timeline.ends.map(({ least, most }) => ({ least: [...least], most: [...most] }));
  const push = (index: number, value: number | null) =>
    [columns[index], ends[index]?.least, ends[index]?.most].forEach((column) => column?.push(value));
  for (const { time_ms, values } of ticks) {
    const [moment, last] = [time_ms / 1000, at.at(-1)];
    if (last !== undefined && moment <= last) continue;
    if (last !== undefined && moment - last > (2.5 * tickMs) / 1000) {
      at.push(last + tickMs / 2000);
      columns.forEach((_, index) => push(index, null));
    }
    at.push(moment);
    columns.forEach((_, index) =>
      push(index, scaled(values[index] ?? null, timeline.series[index]?.per ?? 1)),
    );
  }
  const first = (at.at(-1) ?? 0) - HOUR;
  const old = at.findIndex((moment) => moment >= first);
  const kept = [at, ...columns, ...ends.flatMap(({ least, most }) => [least, most])];
  if (old > 0) kept.forEach((column) => column.splice(0, old));
  return { series: timeline.series, at, columns, ends };
}

/** The same in steps of so many seconds from end to end, so that old and recent values look alike. A gap stays one. */
export function inSteps(timeline: Timeline, seconds: number): Timeline {
  const groups: number[][] = [];
  let last: number | null = null;
  timeline.at.forEach((moment, index) => {
    const isGap = timeline.columns.every((column) => (column[index] ?? null) === null);
    const step = isGap ? null : Math.floor(moment / seconds);
    if (step !== null && step === last) groups.at(-1)?.push(index);
    else groups.push([index]);
    last = step;
  });
  const known = (column: Column, group: number[]) =>
    group.map((index) => column[index] ?? null).filter((value) => value !== null);
  const put = (column: Column, of: (values: number[]) => number): Column =>
    groups.map((group) => {
      const values = known(column, group);
      return values.length > 0 ? of(values) : null;
    });
  return {
    series: timeline.series,
    at: groups.map((group) => timeline.at[group.at(-1) ?? 0] ?? 0),
    columns: timeline.columns.map((column) =>
      put(column, (values) => values.reduce((sum, value) => sum + value, 0) / values.length),
    ),
    ends: timeline.ends.map(({ least, most }) => ({
      least: put(least, (values) => Math.min(...values)),
      most: put(most, (values) => Math.max(...values)),
    })),
  };
}

/** The values of a series. */
export function column(timeline: Timeline, name: SeriesName, index: number | null = null): Column {
  const place = timeline.series.findIndex((series) => series.name === name && series.index === index);
  return timeline.columns[place] ?? [];
}

/** Its least and greatest values, where some moments stand for several. */
export function ends(timeline: Timeline, name: SeriesName): Ends | null {
  const place = timeline.series.findIndex((series) => series.name === name && series.index === null);
  const found = timeline.ends[place];
  const isBand = found?.least.some((least, at) => least !== null && least !== found.most[at]);
  return found && isBand ? found : null;
}

/** Its newest value. */
export function latest(timeline: Timeline, name: SeriesName, index: number | null = null): number | null {
  return column(timeline, name, index).at(-1) ?? null;
}

function scaled(value: number | null, per: number): number | null {
  return value === null ? null : value / per;
}
