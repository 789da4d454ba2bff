// Which lines over time a load's report draws.

import { rate, time } from '../model/number';
import type { Column, Series } from '../model/series';
import type { Panel } from './TimePanel.svelte';

export const perSecond = (value: number) => `${rate(value)}/s`;
export const whole = (value: number) => value.toFixed(0);
export const isKnown = (column: Column) => column.some((value) => value !== null && value !== 0);

export function panelsOf(series: Series): Panel[] {
  const panels: Panel[] = [
    {
      name: 'Requests and failures a second',
      lines: [
        { name: 'requests', hue: 'throughput', column: series.requests, words: perSecond },
        ...(isKnown(series.failures)
          ? [{ name: 'failures', hue: 'failures', column: series.failures, words: perSecond, dash: [6, 3] }]
          : []),
      ],
    },
    {
      name: 'Response time',
      lines: [
        { name: 'p50', hue: 'latency', column: series.p50, words: time },
        { name: 'p95', hue: 'latency', column: series.p95, words: time, dash: [6, 3] },
        { name: 'p99', hue: 'latency', column: series.p99, words: time, dash: [2, 3] },
      ].filter((line) => isKnown(line.column)),
    },
    {
      name: 'Users and requests under way',
      lines: [
        { name: 'users', hue: 'users', column: series.users, words: whole },
        { name: 'under way', hue: 'queue', column: series.inFlight, words: whole, dash: [6, 3] },
      ].filter((line) => isKnown(line.column)),
    },
  ];
  return panels.filter((panel) => panel.lines.length > 0);
}
