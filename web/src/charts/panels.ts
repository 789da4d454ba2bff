// Which lines over time a load's report draws.

import { rate, time } from '../model/number';
import type { Column, Measure, Series } from '../model/series';
import type { Line, Panel } from './TimePanel.svelte';

export const perSecond = (value: number) => `${rate(value)}/s`;
export const whole = (value: number) => value.toFixed(0);
export const isKnown = (column: Column) => column.some((value) => value !== null && value !== 0);

/** The line that a p95 must stay below. */
export const goalOf = (ms: number | null | undefined) =>
  ms === null || ms === undefined ? {} : { goal: { value: ms, words: `goal for the p95: ${time(ms)}` } };

export function panelsOf(series: Series, goalP95?: number | null): Panel[] {
  const line = (name: string, hue: string, of: Measure, words: Line['words'], dash?: number[]): Line => ({
    name,
    hue,
    column: series[of],
    words,
    ...(series.ends ? { ends: series.ends[of] } : {}),
    ...(dash ? { dash } : {}),
  });
  const panels: Panel[] = [
    {
      name: 'Requests and failures a second',
      lines: [
        line('requests', 'throughput', 'requests', perSecond),
        ...(isKnown(series.failures) ? [line('failures', 'failures', 'failures', perSecond, [6, 3])] : []),
      ],
    },
    {
      name: 'Response time',
      lines: [
        line('p50', 'latency', 'p50', time),
        line('p95', 'latency', 'p95', time, [6, 3]),
        line('p99', 'latency', 'p99', time, [2, 3]),
      ].filter(({ column }) => isKnown(column)),
      ...goalOf(goalP95),
    },
    {
      name: 'Users and requests under way',
      lines: [
        line('users', 'users', 'users', whole),
        line('under way', 'queue', 'inFlight', whole, [6, 3]),
      ].filter(({ column }) => isKnown(column)),
    },
  ];
  return panels.filter((panel) => panel.lines.length > 0);
}
