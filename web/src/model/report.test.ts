import { expect, it } from 'vitest';
import { parse } from './report';

const summary = JSON.stringify({ kind: 'plan' });

it('joins a document with its words', () => {
  expect(parse('{"schema":"tenfold/plan/1"}', summary).kind).toBe('plan');
});

it('refuses another version and damaged data in a sentence', () => {
  expect(() => parse('{"schema":"tenfold/plan/2"}', summary)).toThrow(
    'This page reads tenfold/plan/1, and the report holds tenfold/plan/2: write it again.',
  );
  expect(() => parse('{"schema"', summary)).toThrow('is damaged');
});
