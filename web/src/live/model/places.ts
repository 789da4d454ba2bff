// One row for each instance that there is to be: while one is replaced, two processes have its name.

import type { Row } from './instances';

/** The row of each place, by its id: the one that serves, and what becomes of the other one. */
export function placesOf(rows: Map<number, Row>): Map<number, Row> {
  const byPlace = new Map<string, Row[]>();
  for (const row of rows.values()) {
    const there = byPlace.get(row.place);
    if (there) there.push(row);
    else byPlace.set(row.place, [row]);
  }
  if (byPlace.size === rows.size) return rows;
  const shown = [...byPlace.values()].map((there) => (there.length === 1 ? there : [together(there)]).flat());
  return new Map(shown.flat().map((row) => [row.id, row]));
}

function together(there: Row[]): Row {
  const [newest, ...older] = [...there].sort((a, b) => b.id - a.id) as [Row, ...Row[]];
  if (newest.state === 'ready') {
    const before = older.find(({ state }) => state !== 'ready')?.state ?? 'stopping';
    return { ...newest, successor: before === 'draining' ? 'predecessor drains' : 'predecessor ends' };
  }
  const serving = older.find(({ state }) => state === 'ready' || state === 'draining');
  return serving ? { ...serving, successor: 'successor starts' } : newest;
}
