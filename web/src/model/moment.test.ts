import { expect, test } from 'vitest';
import { dateAndTime, timeOfDay } from './moment';

test('dates and times of the day have one form each', () => {
  const at = new Date(2026, 10, 9, 4, 27, 5);
  expect(timeOfDay(at.getTime() / 1000)).toBe('04:27:05');
  expect(dateAndTime(at.toISOString())).toBe('2026-11-09 04:27:05');
  expect(dateAndTime('–')).toBe('–');
});
