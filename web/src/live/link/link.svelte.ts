// Holds the stream, and the board that it keeps up to date.

import type { InstanceHistory, LiveHistory, LiveState } from '../../model/bindings';
import { type Board, boardOf, withEvents } from '../model/board';
import { type Event, Parser } from '../model/stream';
import { Refused, ask, get, said } from './api';

export type Link = 'loading' | 'live' | 'lost' | 'paused' | 'refused' | 'ended';

/** Seconds until it is tried again. */
const BACKOFF = [1, 2, 5, 10];
/** A hidden tab gives its connection back then: a browser has six for each host. */
const HIDDEN_MS = 30_000;
const MOST_IDS = 100;

class Live {
  board = $state.raw<Board | null>(null);
  link = $state<Link>('loading');
  /** Why it is refused or lost. */
  reason = $state('');
  /** Milliseconds since 1970, by this machine's clock. */
  heard = $state(Date.now());
  now = $state(Date.now());

  private waiting: Event[] = [];
  private frame = 0;
  private abort: AbortController | null = null;
  private misses = 0;
  private retry = 0;
  private hiding = 0;
  /** Another process is at this address, or too much was missed. */
  private stale = true;

  start() {
    setInterval(() => (this.now = Date.now()), 1000);
    document.addEventListener('visibilitychange', () => {
      clearTimeout(this.hiding);
      if (document.hidden) this.hiding = window.setTimeout(() => this.pause(), HIDDEN_MS);
      else if (this.link === 'paused') this.resume();
    });
    void this.run();
  }

  pause() {
    if (this.link !== 'live' && this.link !== 'lost') return;
    this.link = 'paused';
    clearTimeout(this.retry);
    this.abort?.abort();
  }

  resume() {
    clearTimeout(this.retry);
    this.misses = 0;
    if (this.link !== 'live') void this.run();
  }

  private async run() {
    try {
      if (this.stale) await this.fetch();
      await this.listen();
    } catch (error) {
      if (this.hasPaused()) return;
      if (error instanceof Refused && error.status === 401) {
        this.link = 'refused';
        return;
      }
      this.reason = said(error);
    }
    if (this.hasPaused()) return;
    this.draw();
    if (this.board) this.link = this.board.live.end ? 'ended' : 'lost';
    else this.link = 'lost';
    // A reset is an answer: it is gone on from at once.
    const seconds =
      this.stale && this.misses === 0 ? 0.05 : BACKOFF[Math.min(this.misses, BACKOFF.length - 1)];
    this.misses += 1;
    this.retry = window.setTimeout(() => void this.run(), (seconds ?? 10) * 1000);
  }

  private hasPaused(): boolean {
    return this.link === 'paused';
  }

  private async fetch() {
    const [state, history] = await Promise.all([
      get<LiveState>('/api/state'),
      get<LiveHistory>('/api/history'),
    ]);
    if (this.board && this.board.live.version !== state.version) {
      location.reload();
      return;
    }
    const ids = state.instances.slice(0, MOST_IDS).map(({ id }) => id);
    const instances =
      ids.length > 0
        ? await get<InstanceHistory>(`/api/history/instances?ids=${ids.join()}`)
        : { instances: [] };
    this.waiting = [];
    this.board = boardOf(state, history, instances);
    this.stale = false;
  }

  private async listen() {
    this.abort = new AbortController();
    const headers = { 'last-event-id': String(this.board?.sequence ?? 0) };
    const answer = await ask('/api/events', { headers, signal: this.abort.signal });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new Parser();
    while (reader) {
      const { value, done } = await reader.read();
      if (done) return;
      this.heard = this.now = Date.now();
      for (const event of parser.take(value)) this.take(event);
      if (this.stale) {
        await reader.cancel();
        return;
      }
    }
  }

  private take(event: Event) {
    if (event.name === 'hello') {
      const { boot, version } = this.board?.live ?? {};
      this.stale = boot !== event.data.boot || version !== event.data.version;
      if (this.stale) return;
      this.link = 'live';
      this.misses = 0;
    }
    if (event.name === 'reset') {
      this.stale = true;
      return;
    }
    this.waiting.push(event);
    // At most once for each picture.
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  private draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const events = this.waiting.splice(0);
    if (this.board && events.length > 0) this.board = withEvents(this.board, events);
  }
}

export const live = new Live();
