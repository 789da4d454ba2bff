import { expect, test } from 'vitest';
import { stacked, sumAt } from './stack';

const PARTS = [
  [1, 2, null, null],
  [0.5, null, 3, null],
  [0, 4, 1, null],
];

test('each part stands on those below it, and one that is unknown adds nothing', () => {
  expect(stacked(PARTS)).toEqual([
    [1, 2, null, null],
    [1.5, null, 3, null],
    [1.5, 6, 4, null],
  ]);
});

test('parts are together what is known of them', () => {
  expect([0, 1, 2, 3].map((at) => sumAt(PARTS, at))).toEqual([1.5, 6, 4, null]);
  expect(sumAt(PARTS, 9)).toBe(null);
});
