// What the live charts draw, and how they name a moment.

import { goalOf, isKnown, perSecond, whole } from '../../charts/panels';
import type { Event, Line, Panel } from '../../charts/TimePanel.svelte';
import type { LiveLoad, Mark, SeriesName } from '../../model/bindings';
import { timeOfDay } from '../../model/moment';
import { counted, time } from '../../model/number';
import { type Timeline, column, ends } from './timeline';

export const SPANS = [
  { minutes: 1, words: 'the last minute' },
  { minutes: 5, words: 'the last 5 minutes' },
  { minutes: 15, words: 'the last 15 minutes' },
  { minutes: 0, words: 'the last hour' },
  { minutes: -1, words: 'this run' },
];

/** In place of minutes: from the beginning of the load to its end. */
export const THIS_RUN = -1;

const DASHES: Record<string, number[]> = {
  p75: [10, 3],
  p90: [8, 3, 2, 3],
  p95: [6, 3],
  p99: [2, 3],
  max: [1, 2],
};

const cores = (value: number) => value.toFixed(value < 9.95 ? 2 : 1);

export function livePanels(
  timeline: Timeline,
  percentiles: string[],
  coresOfMachine: number,
  goalP95: number | null = null,
): Panel[] {
  const line = (
    name: string,
    hue: string,
    series: SeriesName,
    words: Line['words'],
    dash?: number[],
  ): Line => {
    const band = ends(timeline, series);
    return {
      name,
      hue,
      column: column(timeline, series),
      words,
      ...(dash ? { dash } : {}),
      ...(band ? { ends: band } : {}),
    };
  };
  const order = ['p50', 'p75', 'p90', 'p95', 'p99', 'max'].filter((name) => percentiles.includes(name));
  const panels: Panel[] = [
    {
      name: 'Requests and failures a second',
      lines: [
        line('requests', 'throughput', 'requests', perSecond),
        line('failures', 'failures', 'failures', perSecond, [6, 3]),
      ],
    },
    {
      name: 'Response time',
      lines: order.map((name) => line(name, 'latency', name as SeriesName, time, DASHES[name])),
      ...goalOf(goalP95),
    },
    {
      name: 'Users and requests under way',
      lines: [
        line('users', 'users', 'users', whole),
        line('under way', 'queue', 'in_flight', whole, [6, 3]),
        line('waiting', 'failures', 'queued', whole, [2, 3]),
      ],
    },
    {
      name: 'Time in the queue',
      lines: [line('p50', 'queue', 'queue_p50', time), line('p95', 'queue', 'queue_p95', time, [6, 3])],
    },
    {
      name: 'Instances',
      lines: [
        line('instances', 'users', 'instances', whole),
        line('ready', 'throughput', 'ready', whole, [6, 3]),
      ],
    },
    {
      name: 'CPU cores',
      lines: [
        line('app', 'throughput', 'cpu_app', cores),
        line('dependencies', 'failures', 'cpu_dependencies', cores, [2, 3]),
        line('balancer', 'latency', 'cpu_balancer', cores, [8, 3]),
        line('generator', 'users', 'cpu_generator', cores, [6, 3]),
        line('others', 'queue', 'cpu_other', cores, [2, 3]),
        { ...line('stolen', 'text', 'cpu_steal', cores, [1, 2]), hatched: true },
      ],
      capacity: { value: coresOfMachine, words: counted(coresOfMachine, 'core') },
    },
  ];
  return panels
    .map((panel) => ({ ...panel, lines: panel.lines.filter(({ column }) => isKnown(column)) }))
    .filter(({ lines }) => lines.length > 0);
}

export function eventsOf(marks: Mark[]): Event[] {
  return marks.map(({ time_ms, text }) => ({
    at: time_ms / 1000,
    text: `${liveMoment(time_ms / 1000)} ${text}`,
    label: text,
  }));
}

/** A time of the day. */
export const liveMoment = timeOfDay;

/** The last minutes; less if there is less. 0 is all. */
export function spanOf(at: number[], minutes: number): [number, number] | null {
  const now = at.at(-1) ?? 0;
  return minutes === 0 ? [at[0] ?? 0, now] : [Math.max(at[0] ?? 0, now - minutes * 60), now];
}

/** From the beginning of the load that runs, or ran last, to its end. Without a load it is all. */
export function runSpan(at: number[], load: LiveLoad | null): [number, number] | null {
  const [first, now] = [at[0] ?? 0, at.at(-1) ?? 0];
  if (!load) return [first, now];
  const began = Date.parse(load.started_at) / 1000;
  const ended = load.state === 'ended' ? began + load.elapsed_ms / 1000 : now;
  return [Math.max(first, began), Math.max(first, began, Math.min(now, ended))];
}
