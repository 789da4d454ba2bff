// What tests of the live page begin with: a server that has told nothing of instances yet.

import type { LiveState } from '../../model/bindings';

export const EMPTY_STATE: LiveState = {
  schema: 'tenfold/live/1',
  kind: 'up',
  version: '1',
  boot: 'b',
  time_ms: 0,
  started_at: '',
  sequence: 0,
  tick_ms: 1000,
  name: 'app',
  target: null,
  command: [],
  goal: null,
  machine: { cores: 2, memory_bytes: null, kernel: '' },
  actions: [],
  apps: [],
  instances: [],
  series: [],
  states: [],
  tick: null,
  rows: null,
  load: null,
  plan: null,
  measurement: null,
  marks: [],
  end: null,
};
