// The view of an address's fragment, and the one that was looked at last.

import type { LiveKind } from '../../model/bindings';
import { read, write } from './remembered.svelte';
import { viewOf } from './views';

/** `#/nonsense` is no view: what it is called, in a sentence. */
export function unknownRoute(hash: string): string | null {
  if (hash === '' || hash === '#' || hash.startsWith('#token=')) return null;
  const view = viewOf(hash);
  const rest = hash.split('/').slice(2).join('/');
  if (view === null) return `There is no view ${hash}: choose one above.`;
  const isKnown =
    rest === '' ||
    (view === 'history' && /^\d+(-\d+)?$/.test(rest)) ||
    (view === 'cost' && /^\d+$/.test(rest));
  return isKnown ? null : `There is nothing at ${hash}: a run has a number, and two are written as 3-5.`;
}

/** Where the last visit was. Each command opens with a view of its own. */
export function lastRoute(kind: LiveKind): string {
  const kept = read(`route.${kind}`);
  return typeof kept === 'string' && viewOf(kept) !== null && unknownRoute(kept) === null ? kept : '';
}

export function keepRoute(kind: LiveKind, hash: string) {
  if (viewOf(hash) !== null && unknownRoute(hash) === null) write(`route.${kind}`, hash);
}
