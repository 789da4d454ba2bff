import { cleanup, fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { LiveLoad } from '../../model/bindings';
import LoadForm from './LoadForm.svelte';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const field = (name: RegExp) => screen.getByLabelText<HTMLInputElement>(name);
const type = (name: RegExp, value: string) => fireEvent.input(field(name), { target: { value } });

/** What is sent from now on. */
function sent(): unknown[] {
  const bodies: unknown[] = [];
  vi.stubGlobal('fetch', (_: string, { body }: { body: string }) => {
    bodies.push(JSON.parse(body));
    return Promise.resolve(Response.json({}));
  });
  return bodies;
}

test('what was typed is there again when the next load is started', async () => {
  const { unmount } = render(LoadForm, { props: { target: null, running: null } });
  await type(/Number of users/, '25');
  await type(/Path/, '/search');
  unmount();
  render(LoadForm, { props: { target: null, running: null } });
  expect([field(/Number of users/).value, field(/Path/).value]).toEqual(['25', '/search']);
});

test('an emptied ramp of a running load is sent as all at once', async () => {
  const bodies = sent();
  const running = { users_goal: 4, ramp: 2, rate: null } as LiveLoad;
  render(LoadForm, { props: { target: null, running } });
  await type(/Ramp up/, '');
  await fireEvent.submit(screen.getByRole('button', { name: 'Update' }));
  await vi.waitFor(() => expect(bodies).toEqual([{ users: 4, ramp: null }]));
});
