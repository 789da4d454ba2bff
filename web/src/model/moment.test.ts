import { expect, test } from 'vitest';
import { dateAndTime, shortMoment, timeOfDay } from './moment';

test('dates and times of the day have one form each', () => {
  const at = new Date(2026, 10, 9, 4, 27, 5);
  expect(timeOfDay(at.getTime() / 1000)).toBe('04:27:05');
  expect(dateAndTime(at.toISOString())).toBe('2026-11-09 04:27:05');
  expect(dateAndTime('–')).toBe('–');
});

test('a moment of today has no date, and no parts of a second', () => {
  const now = new Date(2026, 10, 29, 18, 0, 0);
  const at = (...parts: [number, number, number, number, number, number, number]) =>
    shortMoment(new Date(...parts).toISOString(), now);
  expect(at(2026, 10, 29, 12, 4, 5, 678)).toBe('12:04:05');
  expect(at(2026, 10, 28, 12, 4, 5, 0)).toBe('2026-11-28 12:04:05');
  expect(shortMoment(null, now)).toBe('–');
});
