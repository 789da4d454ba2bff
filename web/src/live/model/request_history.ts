// What each kind of request did since the page looks, from the tables that it asks for.

import { type Panel } from '../../charts/TimePanel.svelte';
import { perSecond } from '../../charts/panels';
import type { LoadStatistics } from '../../model/bindings';
import { time } from '../../model/number';
import type { Column } from '../../model/series';

export interface RequestHistory {
  /** Of which load. */
  load: number;
  /** Seconds since it began. */
  at: number[];
  /** By method and name. */
  rows: Map<string, { rate: Column; failureRate: Column; p95: Column }>;
}

/** Ten minutes of looks every two seconds. */
const MOST = 300;

export const keyOf = (method: string, name: string) => `${method} ${name}`;

/** With another look. Another load begins anew, and so do its statistics after a reset. */
export function withLook(history: RequestHistory | null, look: LoadStatistics): RequestHistory {
  const moment = look.load.elapsed_ms / 1000;
  const same = history?.load === look.load.id && (history.at.at(-1) ?? 0) <= moment ? history : null;
  if (same && (same.at.at(-1) === moment || look.load.state === 'ended')) return same;
  const before = same?.at.slice(-MOST + 1) ?? [];
  const empty: Column = before.map(() => null);
  const rows: RequestHistory['rows'] = new Map();
  look.statistics.forEach((row, at) => {
    const key = keyOf(row.method, row.name);
    const known = same?.rows.get(key);
    const longer = (column: Column | undefined, value: number | null): Column => [
      ...(column?.slice(-MOST + 1) ?? empty),
      value,
    ];
    rows.set(key, {
      rate: longer(known?.rate, look.current[at]?.rate ?? null),
      failureRate: longer(known?.failureRate, look.current[at]?.failure_rate ?? null),
      p95: longer(known?.p95, row.p95),
    });
  });
  return { load: look.load.id, at: [...before, moment], rows };
}

/** The charts of one kind of request. */
export function requestPanels(history: RequestHistory, key: string): Panel[] {
  const row = history.rows.get(key);
  if (!row) return [];
  return [
    {
      name: `${key}: requests and failures a second, each over ten seconds`,
      lines: [
        { name: 'requests', hue: 'throughput', column: row.rate, words: perSecond },
        { name: 'failures', hue: 'failures', column: row.failureRate, words: perSecond, dash: [6, 3] },
      ],
    },
    {
      name: `${key}: p95 of the run so far`,
      lines: [{ name: 'p95', hue: 'latency', column: row.p95, words: time, dash: [6, 3] }],
    },
  ];
}
