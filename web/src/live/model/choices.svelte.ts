// What a person has typed or chosen. It outlives a view, a load, and the process that is watched.

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
  think: number | null;
  goal: number | null;
}

/** The form that starts a load. */
export const nextLoad = $state<LoadFields>({
  kind: 'users',
  users: 10,
  ramp: 1,
  rate: 50,
  length: '',
  script: '',
  path: '/',
  method: 'GET',
  think: null,
  goal: null,
});

/** What the charts of a load show. */
export const charts = $state({ minutes: 5, percentiles: ['p50', 'p95', 'p99'] });
