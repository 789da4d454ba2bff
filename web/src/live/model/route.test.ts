import { expect, test } from 'vitest';
import { keepRoute, lastRoute, unknownRoute } from './route';

test('what is no route is said', () => {
  expect(['', '#', '#/run', '#/history/12', '#/history/3-5', '#/cost/2'].map(unknownRoute)).toEqual(
    Array(6).fill(null),
  );
  expect(unknownRoute('#/nonsense')).toBe('There is no view #/nonsense: choose one above.');
  expect(unknownRoute('#/history/x')).toMatch(/^There is nothing at #\/history\/x/);
});

test('a command opens where it was looked at last, and no other one does', () => {
  keepRoute('up', '#/instances');
  keepRoute('up', '#/nonsense');
  expect([lastRoute('up'), lastRoute('plan')]).toEqual(['#/instances', '']);
});
