// What is drawn of a plan's curve. Absent stays null all the way: it is never 0, and nothing joins across it.

import type { Plan, Verdict } from './bindings';

export interface Predicted {
  instances: number;
  throughput: number;
  low: number;
  high: number;
  /** ms; null where the queue grows without end. */
  p95: number | null;
  p95Low: number | null;
  /** null where the queue may grow without end. */
  p95High: number | null;
}

export interface Measured {
  instances: number;
  throughput: number;
  /** What the goal judges: the share of what was sent that was completed, at the goal's rate. By chance more or less is sent. */
  completed: number;
  p95: number | null;
  verdict: Verdict;
  reasons: string[];
}

/** A limit that more instances meet. */
export interface Limit {
  at: number;
  word: string;
}

export interface Curve {
  predicted: Predicted[];
  measured: Measured[];
  goalRate: number | null;
  goalP95: number | null;
  recommended: { instances: number; low: number; high: number } | null;
  limits: Limit[];
  /** Beyond the largest count that was measured, the model speaks alone. */
  measuredTo: number;
}

export function curveOf(plan: Plan): Curve {
  const predicted = plan.curve.map(({ instances, predicted: p }) => ({
    instances,
    throughput: p.throughput,
    low: p.low,
    high: p.high,
    p95: p.p95_ms,
    p95Low: p.p95_low_ms,
    p95High: p.p95_high_ms,
  }));
  const measured = measuredOf(plan);
  const r = plan.recommendation;
  return {
    predicted,
    measured,
    goalRate: plan.goal.rate,
    goalP95: plan.goal.p95_ms,
    recommended: r && { instances: r.instances, low: leastOf(plan, measured), high: r.high },
    limits: r?.next_limit ? [{ at: r.next_limit.at_instances, word: words(r.next_limit.kind) }] : [],
    measuredTo: Math.max(0, ...measured.map((m) => m.instances)),
  };
}

/** No smaller count than one that was seen to miss the goal is among the answers. */
function leastOf(plan: Plan, measured: Measured[]): number {
  const r = plan.recommendation;
  if (!r) return 0;
  const misses = measured.filter(
    (m) => m.verdict !== 'invalid' && m.instances < r.instances && isMissed(plan, m),
  );
  return Math.max(r.low, ...misses.map((m) => m.instances + 1));
}

function isMissed(plan: Plan, { p95, completed }: Measured): boolean {
  const { p95_ms: goal, rate } = plan.goal;
  return (goal !== null && p95 !== null && p95 > goal) || (rate !== null && completed < rate);
}

/** The share of what was sent that is the whole, but for requests at the edges (`CARRIED_SHARE` of crates/capacity). */
const CARRIED_SHARE = 0.97;

/** At the goal's rate. Where nothing tells what was sent, it is what was completed. */
function completedOf(plan: Plan, throughput: number, sent: number | null): number {
  const { rate } = plan.goal;
  if (rate === null || sent === null || sent <= 0) return throughput;
  const share = throughput / sent;
  return rate * (share >= CARRIED_SHARE ? 1 : share);
}

/** What decides at each count: its last measurement. */
export function decisive(measured: Measured[]): Measured[] {
  return measured.filter((m, at) => !measured.slice(at + 1).some((later) => later.instances === m.instances));
}

/** Each measurement of the goal's workload; of a plan without probes, what its curve says was measured. */
function measuredOf(plan: Plan): Measured[] {
  const probes = plan.probes.filter((probe) => probe.purpose === 'goal');
  if (probes.length > 0) {
    return probes.map((probe) => ({
      instances: probe.instances,
      throughput: probe.throughput,
      completed: completedOf(plan, probe.throughput, probe.offered),
      p95: probe.latency_ms.p95,
      verdict: probe.verdict,
      reasons: probe.verdict_reasons,
    }));
  }
  return plan.curve.flatMap(({ instances, measured: m }) =>
    m
      ? [
          {
            instances,
            throughput: m.throughput,
            completed: m.throughput,
            p95: m.p95_ms,
            verdict: 'valid' as const,
            reasons: [],
          },
        ]
      : [],
  );
}

/** A kind of limit as words: `cpu_bound` as "CPU bound". */
export function words(kind: string): string {
  const said = kind.replaceAll('_', ' ');
  return said.startsWith('cpu') ? `CPU${said.slice(3)}` : said;
}

/** From a to b in steps that leave `room` labels at most. */
export function integerTicks(from: number, to: number, room: number): number[] {
  const steps = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10000];
  const step = steps.find((s) => Math.floor(to / s) - Math.ceil(from / s) + 1 <= Math.max(2, room)) ?? 20000;
  const ticks: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at);
  return step > 1 && from === 1 ? [1, ...ticks] : ticks;
}

/** Whether a logarithmic axis tells more: times that differ by more than 20 times. */
export function isWide(values: number[]): boolean {
  const positive = values.filter((v) => v > 0);
  return positive.length > 1 && Math.max(...positive) / Math.min(...positive) > 20;
}
