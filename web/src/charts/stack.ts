// Parts that stand on each other.

import type { Column } from '../model/series';

/** The upper edge of each part. One that is unknown at a moment adds nothing to those above it. */
export function stacked(columns: Column[]): Column[] {
  const sums: number[] = [];
  return columns.map((column) =>
    column.map((value, at) => {
      if (value === null) return null;
      const sum = (sums[at] ?? 0) + value;
      sums[at] = sum;
      return sum;
    }),
  );
}

/** All parts together at a moment; null if none is known. */
export function sumAt(columns: Column[], at: number): number | null {
  let sum: number | null = null;
  for (const column of columns) {
    const value = column[at] ?? null;
    if (value !== null) sum = (sum ?? 0) + value;
  }
  return sum;
}
