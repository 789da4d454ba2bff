import { expect, test } from 'vitest';
import type { LiveLoad, Measurement } from '../../model/bindings';
import { headlineOf } from './headline';
import { EMPTY_STATE } from './state.fixture';
import type { Snapshot } from './snapshot';

const LOAD = {
  state: 'running',
  users: 8,
  requests: 200,
  failures: 3,
  p95_ms: 0.4,
  status: 'met',
  sentence: 'The goal is held.',
} as LiveLoad;

const of = (live: Partial<Snapshot['live']>) =>
  headlineOf({
    live: { ...EMPTY_STATE, ...live },
    timeline: { series: [], at: [], columns: [], ends: [] },
    rows: new Map(),
    histories: new Map(),
    sequence: 0,
  });

test('a load has figures, Stop, and an alert once its goal breaks', () => {
  const held = of({ load: LOAD, actions: ['stop_load'] });
  expect(held.figures.map(({ value }) => value)).toEqual(['8', '–', '1.5 %', '400 us']);
  expect([held.stop?.path, held.alert]).toEqual(['/api/load/stop', null]);
  const missed = { ...LOAD, status: 'not_met', goal_p95_ms: 0.3 } as LiveLoad;
  expect(of({ load: missed }).alert).toBe('Goal missed: 5 % of the answers take longer than 300 us.');
  expect(of({ load: { ...missed, goal_p95_ms: null } }).alert).toMatch(/^Overloaded/);
  expect(of({ load: { ...missed, state: 'ended' } })).toEqual({ figures: [], stop: null, alert: null });
});

test('Stop ends a measurement that the page has started, once', () => {
  const measurement = { kind: 'plan', state: 'running', step: '1 instance' } as Measurement;
  expect(of({ measurement }).stop).toEqual({ path: '/api/measurement/stop', what: 'plan' });
  expect(of({ measurement: { ...measurement, state: 'stopping' } }).stop).toBe(null);
});
