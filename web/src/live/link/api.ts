// What is asked of the server. A token comes in the URL's fragment, which a browser sends to nobody, and stays in this tab.

import type { ApiError } from '../../model/bindings';

const TOKEN = 'tenfold.token';

/** A refusal, in the server's own sentence. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    sentence: string,
  ) {
    super(sentence);
  }
}

/** Takes the token out of the URL, and out of the history of the browser. */
export function takeToken() {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (!token) return;
  keepToken(token);
  history.replaceState(null, '', location.pathname);
}

export function keepToken(token: string) {
  sessionStorage.setItem(TOKEN, token.trim());
}

/** Whether a token was given, right or wrong. */
export function hasToken(): boolean {
  return (sessionStorage.getItem(TOKEN) ?? '') !== '';
}

export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.set('authorization', `Bearer ${token}`);
  const answer = await fetch(path, { ...options, headers, cache: 'no-store', credentials: 'omit' });
  if (!answer.ok) throw new Refused(answer.status, await sentenceOf(answer));
  return answer;
}

export async function get<T>(path: string, signal: AbortSignal | null = null): Promise<T> {
  return (await ask(path, { signal })).json() as Promise<T>;
}

/** Asks for an effect, which ends it: an answer that comes after that is dropped, for it is older than the next one. */
export function inquire<T>(
  path: string,
  take: (answer: T) => void,
  fail: (sentence: string) => void = () => undefined,
): () => void {
  const abort = new AbortController();
  get<T>(path, abort.signal)
    .then((answer) => abort.signal.aborted || take(answer))
    .catch((error: unknown) => abort.signal.aborted || fail(said(error)));
  return () => abort.abort();
}

export async function post<T>(path: string, body: object): Promise<T> {
  const headers = { 'content-type': 'application/json' };
  return (await ask(path, { method: 'POST', headers, body: JSON.stringify(body) })).json() as Promise<T>;
}

/** Saves a file. A plain link could not show the token. */
export async function download(path: string, name: string) {
  const url = URL.createObjectURL(await (await ask(path)).blob());
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** For people, whatever went wrong. */
export function said(error: unknown): string {
  if (error instanceof Refused) {
    const text = error.message.charAt(0).toUpperCase() + error.message.slice(1);
    return /[.?!]$/.test(text) ? text : `${text}.`;
  }
  return 'Tenfold does not answer: look whether it still runs.';
}

async function sentenceOf(answer: Response): Promise<string> {
  try {
    return ((await answer.json()) as ApiError).error;
  } catch {
    return `it is refused (${answer.status})`;
  }
}
