// Instances as rows: which of them is different, and in what.

import type { Instance, InstanceColumns, InstanceState, Rows } from '../../model/bindings';
import { compareNames } from '../../model/names';
import { grouped, rate, time } from '../../model/number';

export interface Row {
  id: number;
  name: string;
  /** Which of the instances that there are to be it is: a successor has the same. */
  place: string;
  /** What becomes of another process at the same place, while it is replaced. */
  successor: string | null;
  app: string;
  address: string;
  pid: number | null;
  startedMs: number | null;
  warning: string | null;
  state: InstanceState;
  slots: number | null;
  inFlight: number | null;
  /** Of the last ten seconds, a second. */
  rate: number | null;
  failureRate: number | null;
  /** ms */
  mean: number | null;
  p95: number | null;
  /** Cores. */
  cpu: number | null;
  /** MiB. */
  memory: number | null;
  restarts: number | null;
}

/** The mean service time (ms) of the last minute. It stays until the next value. */
export interface MeanHistory {
  at: number[];
  mean: (number | null)[];
}

const HISTORY_MS = 60_000;

/** A row for each instance, by name. What is known of it stays. */
export function rowsOf(instances: Instance[], before: Map<number, Row>): Map<number, Row> {
  const sorted = [...instances].sort((a, b) => compareNames(a.name, b.name));
  return new Map(
    sorted.map((instance) => {
      const { id, app, address, pid, started_ms: startedMs, warning } = instance;
      const known = before.get(id) ?? empty();
      const name = instance.display_name ?? instance.name;
      const place = `${app}/${instance.name}`;
      return [id, { ...known, id, name, place, successor: null, app, address, pid, startedMs, warning }];
    }),
  );
}

/** Rows with what changed. The others are the same objects as before. */
export function rowsWith(before: Map<number, Row>, states: InstanceState[], changed: Rows): Map<number, Row> {
  const rows = new Map(before);
  changed.ids.forEach((id, at) => {
    const row = rows.get(id);
    if (!row) return;
    const of = (values: (number | null)[], per: number) => {
      const value = values[at] ?? null;
      return value === null ? null : value / per;
    };
    rows.set(id, {
      ...row,
      state: states[changed.state[at] ?? 0] ?? 'starting',
      slots: of(changed.slots, 1),
      inFlight: of(changed.in_flight, 1),
      rate: of(changed.requests, 10),
      failureRate: of(changed.failures, 10),
      mean: of(changed.service_mean, 1000),
      p95: of(changed.service_p95, 1000),
      cpu: of(changed.cpu, 1000),
      memory: of(changed.memory, 1),
      restarts: of(changed.restarts, 1),
    });
  });
  return rows;
}

function empty(): Omit<
  Row,
  'id' | 'name' | 'place' | 'successor' | 'app' | 'address' | 'pid' | 'startedMs' | 'warning'
> {
  const none = { slots: null, inFlight: null, rate: null, failureRate: null, mean: null, p95: null };
  return { state: 'starting', ...none, cpu: null, memory: null, restarts: null };
}

export function historiesWith(
  before: Map<number, MeanHistory>,
  rows: Map<number, Row>,
  changed: Rows,
): Map<number, MeanHistory> {
  const histories = new Map(before);
  for (const id of before.keys()) if (!rows.has(id)) histories.delete(id);
  changed.ids.forEach((id, nth) => {
    const value = changed.service_mean[nth] ?? null;
    const { at, mean } = histories.get(id) ?? { at: [], mean: [] };
    if (changed.time_ms <= (at.at(-1) ?? 0)) return;
    const first = at.findIndex((moment) => moment >= changed.time_ms - HISTORY_MS);
    const from = first < 0 ? at.length : first;
    histories.set(id, {
      at: [...at.slice(from), changed.time_ms],
      mean: [...mean.slice(from), value === null ? null : value / 1000],
    });
  });
  return histories;
}

/** Of the last minutes, before the page came. */
export function meanHistoryOf(columns: InstanceColumns): MeanHistory {
  const last = columns.time_ms.at(-1) ?? 0;
  const first = Math.max(
    0,
    columns.time_ms.findIndex((moment) => moment >= last - HISTORY_MS),
  );
  return {
    at: columns.time_ms.slice(first),
    mean: columns.service_mean.slice(first).map((value) => (value === null ? null : value / 1000)),
  };
}

/** Ready ones are the last: an instance that is not is the first thing to look at. */
const RANKS: InstanceState[] = [
  'down',
  'backoff',
  'probing',
  'starting',
  'stopping',
  'draining',
  'drained',
  'ready',
];

/** What does not serve is worse than what fails, and that is worse than what is slow. */
function worse(a: Row, b: Row): number {
  return (
    RANKS.indexOf(a.state) - RANKS.indexOf(b.state) ||
    (b.failureRate ?? 0) - (a.failureRate ?? 0) ||
    slowness(b) - slowness(a) ||
    compareNames(a.name, b.name)
  );
}

export function worstFirst(rows: Iterable<Row>): Row[] {
  return [...rows].sort(worse);
}

/** The first of them, without the rest in order. */
function worstOf(rows: Row[]): Row | undefined {
  return rows.reduce<Row | undefined>(
    (worst, row) => (worst && worse(worst, row) <= 0 ? worst : row),
    undefined,
  );
}

const slowness = (row: Row) => row.p95 ?? row.mean ?? 0;

/** A time that is this much longer than that of the others is no chance. */
const SLOWER = 1.5;
/** Fewer requests a second say too little about an instance. */
const LEAST_RATE = 0.5;

/** Which one is different, in a sentence. */
export function difference(rows: Row[]): string {
  if (rows.length === 0) return 'No instances are known here.';
  const away = rows.filter((row) => row.state !== 'ready');
  const serving = rows.filter((row) => row.state === 'ready');
  const failing = serving.filter((row) => (row.failureRate ?? 0) > 0);
  const times = serving
    .filter((row) => (row.rate ?? 0) >= LEAST_RATE && row.mean !== null)
    .map((row) => ({ row, mean: row.mean ?? 0 }))
    .sort((a, b) => b.mean - a.mean);
  const [slowest, ...others] = times;
  const said: string[] = [];
  const first = worstOf(away);
  if (first) {
    const others = away.length > 1 ? ` and ${away.length - 1} more` : '';
    said.push(`${first.name}${others} ${away.length > 1 ? 'get' : 'gets'} no requests (${first.state}).`);
  }
  const worst = worstOf(failing);
  if (worst) said.push(`${worst.name} fails most: ${rate(worst.failureRate ?? 0)} requests a second.`);
  const typical = others[Math.floor(others.length / 2)]?.mean;
  if (slowest && typical !== undefined && slowest.mean > SLOWER * typical) {
    const ratio = slowest.mean / typical;
    const longer = ratio.toFixed(ratio < 9.95 ? 1 : 0);
    said.push(
      `${slowest.row.name} is slow: ${time(slowest.mean)} a request, ${longer} times as long as its peers (${time(typical)}).`,
    );
  }
  if (said.length > 0) return said.join(' ');
  if (times.length > 1) {
    const [least, most] = [times.at(-1)?.mean ?? 0, slowest?.mean ?? 0];
    return `${times.length === rows.length ? 'All' : times.length} instances answer alike: ${time(least)} to ${time(most)} a request.`;
  }
  return serving.length === 1
    ? '1 instance is ready.'
    : `All ${grouped(serving.length)} instances are ready.`;
}
