// All that the page knows: the state it asked for, and every event since.

import type { InstanceHistory, LiveHistory, LiveState, Tick } from '../../model/bindings';
import { type Row, type MeanHistory, rowsOf, rowsWith, meanHistoryOf, historiesWith } from './instances';
import type { Event } from './stream';
import { type Timeline, extended, timelineOf } from './timeline';

export interface Snapshot {
  live: LiveState;
  rows: Map<number, Row>;
  histories: Map<number, MeanHistory>;
  timeline: Timeline;
  /** Id of the newest event that is in it. */
  sequence: number;
}

const MOST_MARKS = 200;

export function snapshotOf(live: LiveState, history: LiveHistory, instances: InstanceHistory): Snapshot {
  const rows = rowsOf(live.instances, new Map());
  return {
    live,
    rows: live.rows ? rowsWith(rows, live.states, live.rows) : rows,
    histories: new Map(instances.instances.map((columns) => [columns.id, meanHistoryOf(columns)])),
    timeline: timelineOf(history),
    sequence: live.sequence,
  };
}

/** A new snapshot with these events. What it had already changes nothing. */
export function withEvents(snapshot: Snapshot, events: Event[]): Snapshot {
  const live = { ...snapshot.live };
  let { rows, histories, sequence } = snapshot;
  const ticks: Tick[] = [];
  for (const event of events) {
    if (event.id !== null && event.id <= sequence) continue;
    sequence = event.id ?? sequence;
    switch (event.name) {
      case 'hello':
        live.tick_ms = event.data.tick_ms;
        break;
      case 'define': {
        const { apps, actions, instances, gone } = event.data;
        live.apps = apps ?? live.apps;
        live.actions = actions ?? live.actions;
        const changed = new Set([...gone, ...instances.map(({ id }) => id)]);
        live.instances = [...live.instances.filter(({ id }) => !changed.has(id)), ...instances];
        rows = rowsOf(live.instances, rows);
        break;
      }
      case 'tick':
        ticks.push(event.data);
        live.tick = event.data;
        break;
      case 'rows':
        rows = rowsWith(rows, live.states, event.data);
        histories = historiesWith(histories, rows, event.data);
        break;
      case 'mark':
        live.marks = [...live.marks, event.data].slice(-MOST_MARKS);
        break;
      case 'load':
        live.load = event.data;
        break;
      case 'plan':
        live.plan = event.data;
        break;
      case 'measurement':
        live.measurement = event.data;
        break;
      case 'end':
        live.end = event.data;
        break;
      case 'reset':
        break;
    }
  }
  const timeline = ticks.length > 0 ? extended(snapshot.timeline, ticks, live.tick_ms) : snapshot.timeline;
  return { live, rows, histories, timeline, sequence };
}
