import { expect, test } from 'vitest';
import { seconds } from './duration';

test.each([
  ['20', 20],
  ['0.5', 0.5],
  ['20s', 20],
  ['3m', 180],
  ['1h20m', 4800],
  ['3h30m10s', 12_610],
  ['', null],
  ['soon', null],
  ['1m1h', null],
])('%s is a run time', (text, expected) => expect(seconds(text)).toBe(expected));
