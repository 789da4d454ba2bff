// What a person has typed or chosen. It outlives a view, a load, the tab, and the process that is watched.

import { withoutSecrets } from './headers';
import { remembered } from './remembered.svelte';

export interface LoadFields {
  /** Phases are those of the script. */
  kind: 'users' | 'rate' | 'phases';
  users: number | null;
  ramp: number | null;
  rate: number | null;
  length: string;
  script: string;
  path: string;
  method: string;
  /** A line each. */
  headers: string;
  body: string;
  think: number | null;
  goal: number | null;
}

export interface PlanFields {
  kind: 'users' | 'rate' | 'capacity';
  users: number | null;
  think: number | null;
  rate: number | null;
  p95: number | null;
  path: string;
  most: number | null;
  budget: string;
}

export interface CostFields {
  /** Lists, with commas. */
  cpus: string;
  memory: string;
  instances: string;
  requests: number | null;
  concurrency: number | null;
  p95: number | null;
  path: string;
}

/** The form that starts a load. */
export const nextLoad = remembered<LoadFields>(
  'load',
  {
    kind: 'users',
    users: 10,
    ramp: 1,
    rate: 50,
    length: '',
    script: '',
    path: '/',
    method: 'GET',
    headers: '',
    body: '',
    think: null,
    goal: null,
  },
  (fields) => ({ ...fields, headers: withoutSecrets(fields.headers) }),
);

/** The form that starts a plan. */
export const nextPlan = remembered<PlanFields>('plan', {
  kind: 'rate',
  users: 10,
  think: null,
  rate: 50,
  p95: 200,
  path: '/',
  most: null,
  budget: '90s',
});

/** The form that starts a cost. */
export const nextCost = remembered<CostFields>('cost', {
  cpus: '0.25, 0.5, 1',
  memory: '256',
  instances: '1, 2, 4',
  requests: 2000,
  concurrency: 100,
  p95: 200,
  path: '/',
});

/** What the charts of a load show. */
export const charts = remembered('charts', { minutes: 5, percentiles: ['p50', 'p95', 'p99'] });
