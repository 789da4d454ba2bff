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

const SCRIPT = 'scenarios: [{flow: [{get: {url: /}}]}]';
const start = () => fireEvent.submit(screen.getByRole('button', { name: 'Start' }));

test('a script takes the place of path and method, and its phases that of users', async () => {
  const bodies = sent();
  render(LoadForm, { props: { target: null, running: null } });
  await type(/Number of users/, '2');
  await type(/Ramp up/, '');
  expect(screen.queryByLabelText(/phases of the script/)).toBe(null);
  await type(/Artillery script/, SCRIPT);
  expect(screen.queryByLabelText(/^Path/)).toBe(null);
  await start();
  await vi.waitFor(() => expect(bodies).toEqual([{ users: 2, script: SCRIPT }]));
  await fireEvent.click(field(/phases of the script/));
  expect(screen.queryByLabelText(/Number of users/)).toBe(null);
  await start();
  await vi.waitFor(() => expect(bodies[1]).toEqual({ script: SCRIPT }));
  await type(/Artillery script/, '');
  expect(field(/Number of users/).value).toBe('2');
  expect(field(/Users, who wait/).checked).toBe(true);
});

test('what is wrong with a script stands at its field, with its line selected', async () => {
  const error = 'in the script, line 2: there is no flow; add its steps';
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ status: 400, error }, { status: 400 })));
  render(LoadForm, { props: { target: null, running: null } });
  await type(/Artillery script/, 'scenarios:\n  - name: a\nx-b: 1');
  await start();
  const script = screen.getByLabelText<HTMLTextAreaElement>(/Artillery script/);
  await vi.waitFor(() => expect(script.getAttribute('aria-invalid')).toBe('true'));
  expect(document.getElementById('script-fault')?.textContent).toMatch(/^In the script, line 2: .* steps\.$/);
  await vi.waitFor(() => {
    expect(script.value.slice(script.selectionStart, script.selectionEnd)).toBe('  - name: a');
  });
  expect(document.activeElement).toBe(script);
  await type(/Artillery script/, '');
  expect(document.getElementById('script-fault')).toBe(null);
});

test('an emptied ramp of a running load is sent as all at once', async () => {
  const bodies = sent();
  const running = { users_goal: 4, ramp: 2, rate: null } as LiveLoad;
  render(LoadForm, { props: { target: null, running } });
  await type(/Ramp up/, '');
  await fireEvent.submit(screen.getByRole('button', { name: 'Update' }));
  await vi.waitFor(() => expect(bodies).toEqual([{ users: 4, ramp: null }]));
});
