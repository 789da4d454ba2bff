import { expect, it } from 'vitest';
import { fromZero, logarithmic, placed, roundTicks, spread } from './scale';

it('begins at 0, also where everything is 0', () => {
  const axis = fromZero(47, [100, 0], 4);
  expect([axis(0), axis.ticks[0], axis.ticks.at(-1)]).toEqual([100, 0, 50]);
  expect(fromZero(0, [100, 0], 4)(0)).toBe(100);
});

it('has ticks at 1, 2 and 5 of each decade', () => {
  expect(logarithmic(9, 600, [100, 0]).ticks).toEqual([10, 20, 50, 100, 200, 500]);
  expect(logarithmic(1, 1e5, [100, 0]).ticks).toEqual([1, 10, 100, 1000, 10000, 100000]);
});

it('has ticks at round values, and of counts at whole ones', () => {
  expect(roundTicks(8.8, true)).toEqual([0, 2, 4, 6, 8]);
  expect(roundTicks(1.1, true)).toEqual([0, 1]);
  expect(roundTicks(1.1, false)).toEqual([0, 0.5, 1]);
  expect(roundTicks(0.33, false)).toEqual([0, 0.1, 0.2, 0.3]);
});

it('keeps labels between both edges', () => {
  expect(
    [placed(5, 20, 0, 500), placed(250, 20, 0, 500), placed(498, 20, 0, 500)].map((p) => p.anchor),
  ).toEqual(['start', 'middle', 'end']);
});

it('puts labels where they cover no other, or nowhere', () => {
  const crowd = Array.from({ length: 6 }, () => ({ x: 100, y: 100, word: '2 × 0.1' }));
  const places = spread(crowd, 0, 300).map((label) => label && [Math.round(label.x), label.y]);
  expect(places).toEqual([[100, 88], [100, 121], [136, 104], [64, 104], null, null]);
});
