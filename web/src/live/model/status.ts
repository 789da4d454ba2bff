// What the page's head says of what runs.

import type { LiveState } from '../../model/bindings';
import type { Link } from '../link/link.svelte';

export interface Said {
  mark: string;
  word: string;
  tone: 'good' | 'bad' | 'doubt' | 'plain';
}

const PHASES = { ramping: 'ramping', running: 'running', paused: 'load paused', ending: 'ending' };

export function statusOf(state: LiveState | null, link: Link): Said {
  switch (link) {
    case 'loading':
      return { mark: '…', word: 'connecting', tone: 'plain' };
    case 'lost':
      return { mark: '✕', word: 'connection lost', tone: 'bad' };
    case 'paused':
      return { mark: '‖', word: 'page paused', tone: 'plain' };
    case 'refused':
      return { mark: '✕', word: 'no access', tone: 'bad' };
    case 'ended':
      return { mark: '■', word: 'ended', tone: 'plain' };
    case 'live':
      break;
  }
  if (!state) return { mark: '…', word: 'connecting', tone: 'plain' };
  if (state.end) return { mark: '■', word: 'ended', tone: 'plain' };
  const load = state.load;
  if (load && load.state !== 'ended') {
    const tone = load.status === 'not_met' ? 'bad' : load.status === 'unclear' ? 'doubt' : 'good';
    return { mark: '▶', word: PHASES[load.state], tone };
  }
  if (state.kind === 'plan') {
    return state.plan?.plan
      ? { mark: '✓', word: 'answered', tone: 'good' }
      : { mark: '▶', word: 'measuring', tone: 'good' };
  }
  return { mark: '●', word: 'ready', tone: 'good' };
}

/** Seconds without an event, if they are too many. */
export function silence(now: number, heard: number, tickMs: number): number | null {
  const quiet = (now - heard) / 1000;
  return quiet > Math.max(3, (2.5 * tickMs) / 1000) ? Math.round(quiet) : null;
}
