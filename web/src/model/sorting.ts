// Rows of a table in the order of a column.

import { compareNames } from './names';

export interface Order<Key> {
  by: Key;
  descending: boolean;
}

/** Clicking a head sorts by it, downwards first, and then the other way. */
export function turned<Key>(order: Order<Key>, by: Key): Order<Key> {
  return { by, descending: order.by === by ? !order.descending : true };
}

/** A sorted copy. Absent values stand last, whichever way. */
export function sorted<Row, Key extends keyof Row>(rows: Row[], { by, descending }: Order<Key>): Row[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [a[by], b[by]];
    if (x === null || x === undefined) return y === null || y === undefined ? 0 : 1;
    if (y === null || y === undefined) return -1;
    return sign * (typeof x === 'string' ? compareNames(x, String(y)) : Number(x) - Number(y));
  });
}
