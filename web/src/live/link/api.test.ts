import { afterEach, expect, test, vi } from 'vitest';
import { inquire } from './api';

afterEach(() => vi.unstubAllGlobals());

test('an answer that comes after the next question is dropped, and so is its fault', async () => {
  const ends: ((answer: Response) => void)[] = [];
  vi.stubGlobal('fetch', () => new Promise<Response>((end) => ends.push(end)));
  const said: unknown[] = [];
  const ask = () =>
    inquire(
      '/',
      (answer) => said.push(answer),
      (sentence) => said.push(sentence),
    );
  ask()();
  ask()();
  ask();
  ask();
  ends[2]?.(Response.json(3));
  ends[3]?.(Response.json({ status: 404, error: 'there is no run 4' }, { status: 404 }));
  ends[0]?.(Response.json(1));
  ends[1]?.(Response.json({ status: 404, error: 'there is no run 2' }, { status: 404 }));
  await vi.waitFor(() => expect(said).toEqual([3, 'There is no run 4.']));
  await new Promise((later) => setTimeout(later, 20));
  expect(said).toHaveLength(2);
});
