// The values of the last hour in columns, one for each series, in their units.

import type { LiveHistory, Series, SeriesName, Tick, Tier } from '../../model/bindings';
import type { Column } from '../../model/series';

export interface Timeline {
  series: Series[];
  /** Seconds since 1970, rising. */
  at: number[];
  /** In the order of the series. Absent is null, and never 0. */
  columns: Column[];
}

const HOUR = 3600;

/** What was before the page came. Of ten old ticks it keeps the greatest values, so that no peak is lost. */
export function timelineOf(history: LiveHistory): Timeline {
  const { series, old, recent } = history;
  const whole = (tier: Tier) => (tier.max.length > 0 ? tier.max : tier.min);
  return {
    series,
    at: [...old.time_ms, ...recent.time_ms].map((ms) => ms / 1000),
    columns: series.map(({ per }, index) =>
      [...(whole(old)[index] ?? []), ...(whole(recent)[index] ?? [])].map((value) => scaled(value, per)),
    ),
  };
}

/** With what came since. A longer silence is a gap, and what is older than an hour goes. */
export function extended(timeline: Timeline, ticks: Tick[], tickMs: number): Timeline {
  const at = [...timeline.at];
  const columns = timeline.columns.map((column) => [...column]);
  for (const { time_ms, values } of ticks) {
    const [moment, last] = [time_ms / 1000, at.at(-1)];
    if (last !== undefined && moment <= last) continue;
    if (last !== undefined && moment - last > (2.5 * tickMs) / 1000) {
      at.push(last + tickMs / 2000);
      for (const column of columns) column.push(null);
    }
    at.push(moment);
    columns.forEach((column, index) => {
      column.push(scaled(values[index] ?? null, timeline.series[index]?.per ?? 1));
    });
  }
  const first = (at.at(-1) ?? 0) - HOUR;
  const old = at.findIndex((moment) => moment >= first);
  if (old > 0) [at, ...columns].forEach((column) => column.splice(0, old));
  return { series: timeline.series, at, columns };
}

/** The values of a series. */
export function column(timeline: Timeline, name: SeriesName, index: number | null = null): Column {
  const place = timeline.series.findIndex((series) => series.name === name && series.index === index);
  return timeline.columns[place] ?? [];
}

/** Its newest value. */
export function latest(timeline: Timeline, name: SeriesName, index: number | null = null): number | null {
  return column(timeline, name, index).at(-1) ?? null;
}

function scaled(value: number | null, per: number): number | null {
  return value === null ? null : value / per;
}
