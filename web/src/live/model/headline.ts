// What the head of every view says of what runs: its figures, what Stop stops, and whether the goal breaks.

import type { LiveLoad } from '../../model/bindings';
import { counted, grouped, rate, time, timeOr } from '../../model/number';
import type { Snapshot } from './snapshot';
import { latest } from './timeline';

export interface Headline {
  figures: { name: string; value: string }[];
  /** Where Stop goes, and what it ends. */
  stop: { path: string; what: string } | null;
  /** That the goal is missed, in a sentence. */
  alert: string | null;
}

export function headlineOf({ live, timeline }: Snapshot): Headline {
  const { load, measurement } = live;
  if (load && load.state !== 'ended' && !live.end) {
    const throughput = latest(timeline, 'requests');
    const share = load.requests > 0 ? (100 * load.failures) / load.requests : 0;
    return {
      figures: [
        load.users === null
          ? { name: 'asked for', value: `${rate(load.rate ?? 0)}/s` }
          : { name: 'users', value: grouped(load.users) },
        { name: 'requests/s', value: throughput === null ? '–' : rate(throughput) },
        { name: 'failed', value: `${share.toFixed(share > 0 && share < 10 ? 1 : 0)} %` },
        { name: 'p95', value: timeOr(load.p95_ms) },
      ],
      stop: live.actions.includes('stop_load') ? { path: '/api/load/stop', what: 'load' } : null,
      alert: load.status === 'not_met' ? broken(load) : null,
    };
  }
  if (measurement && measurement.state !== 'ended') {
    return {
      figures: [{ name: measurement.kind, value: measurement.step }],
      stop:
        measurement.state === 'running' ? { path: '/api/measurement/stop', what: measurement.kind } : null,
      alert: null,
    };
  }
  if (live.plan && !live.plan.plan) {
    return {
      figures: [{ name: 'plan', value: `${counted(live.plan.probes.length, 'measurement')} so far` }],
      stop: null,
      alert: null,
    };
  }
  if (live.end) return { figures: [], stop: null, alert: null };
  const figures = [
    { name: 'requests/s', value: latest(timeline, 'requests'), words: rate },
    { name: 'p95', value: latest(timeline, 'p95'), words: timeOr },
  ];
  const known = figures.filter(({ value }) => value !== null);
  return {
    figures: known.map(({ name, value, words }) => ({ name, value: words(value ?? 0) })),
    stop: null,
    alert: null,
  };
}

/** Without a number that changes each second: an alert is read aloud whenever it changes. */
function broken({ goal_p95_ms: goal, p95_ms: p95 }: LiveLoad): string {
  return goal !== null && p95 !== null && p95 >= goal
    ? `Goal missed: 5 % of the answers take longer than ${time(goal)}.`
    : 'Overloaded: requests come faster than they are answered.';
}
