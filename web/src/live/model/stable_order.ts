// The order of the table's rows. It stands for some seconds: rows that move each second cannot be read.

import { type Order, sorted } from '../../model/sorting';
import { type Row, worstFirst } from './instances';

const STABLE_MS = 5000;

export class StableOrder {
  private ids: number[] = [];
  private order: Order<keyof Row> | null = null;
  private since = -Infinity;

  /** The rows in the order that stands. Another order, a new row and the end of its time make a new one. */
  rows(rows: Map<number, Row>, order: Order<keyof Row> | null, now: number): Row[] {
    const known = this.ids.flatMap((id) => rows.get(id) ?? []);
    const age = now - this.since;
    if (order === this.order && known.length === rows.size && age >= 0 && age < STABLE_MS) return known;
    const found = order ? sorted([...rows.values()], order) : worstFirst(rows.values());
    this.ids = found.map(({ id }) => id);
    this.order = order;
    this.since = now;
    return found;
  }
}
