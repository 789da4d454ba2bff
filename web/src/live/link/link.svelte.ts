// Holds the stream, and the snapshot that it keeps up to date.

import type { InstanceHistory, LiveHistory, LiveState } from '../../model/bindings';
import { type Snapshot, snapshotOf, withEvents } from '../model/snapshot';
import { type Event, Parser } from '../model/stream';
import { Refused, ask, get, hasToken, said } from './api';

export type Link = 'loading' | 'live' | 'lost' | 'paused' | 'refused' | 'ended';

/** Seconds until it is tried again. */
const BACKOFF = [1, 2, 5, 10];
/** A hidden tab gives its connection back then: a browser has six for each host. */
const HIDDEN_MS = 30_000;
/** The server says something every 15 s. After such a silence the connection is dead: the machine or the tab slept. */
const SILENT_MS = 40_000;
const MOST_IDS = 100;

class Live {
  snapshot = $state.raw<Snapshot | null>(null);
  link = $state<Link>('loading');
  /** Why it is refused or lost. */
  reason = $state('');
  /** Milliseconds since 1970, by this machine's clock. */
  heard = $state(Date.now());
  now = $state(Date.now());

  private waiting: Event[] = [];
  private frame = 0;
  /** Ends what is asked and read now. */
  private abort = new AbortController();
  private misses = 0;
  private retry = 0;
  private hiding = 0;
  /** It is paused because the tab is hidden, and not by hand. */
  private isAway = false;
  /** Another process is at this address, or too much was missed. */
  private stale = true;
  /** It was asked anew without a pause, and no event has come since. */
  private hurried = false;

  start() {
    setInterval(() => this.look(), 1000);
    document.addEventListener('visibilitychange', () => this.turn());
    this.turn();
    void this.run();
  }

  pause() {
    if (this.link === 'paused' || this.link === 'refused') return;
    this.link = 'paused';
    clearTimeout(this.retry);
    this.abort.abort();
  }

  /** Asks at once. */
  resume() {
    this.isAway = false;
    this.misses = 0;
    this.link = 'loading';
    void this.run();
  }

  /** The tab was hidden, or came back. */
  private turn() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = window.setTimeout(() => this.leave(), HIDDEN_MS);
    else if (this.isAway || this.link === 'lost' || this.link === 'ended') this.resume();
    else this.look();
  }

  private leave() {
    this.isAway ||= this.link !== 'paused';
    this.pause();
  }

  private look() {
    this.now = Date.now();
    const isWaiting = this.link !== 'paused' && this.link !== 'refused';
    if (isWaiting && this.now - this.heard > SILENT_MS) this.resume();
  }

  private async run() {
    clearTimeout(this.retry);
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.heard = Date.now();
    this.draw();
    let isForeign = false;
    try {
      if (this.stale) await this.fetch(signal);
      await this.listen(signal);
      isForeign = this.stale;
      this.reason = '';
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status === 401) {
        this.reason = hasToken() ? 'This token is not the one of this address: copy it anew.' : '';
        this.link = 'refused';
        return;
      }
      this.reason = said(error);
    }
    if (signal.aborted) return;
    this.draw();
    // That the state is another one is an answer: it is asked for at once, and once in a row.
    const isHurried = isForeign && !this.hurried;
    this.hurried = isForeign;
    if (isHurried) this.link = 'loading';
    else this.link = this.snapshot?.live.end ? 'ended' : 'lost';
    const seconds = isHurried ? 0.05 : BACKOFF[Math.min(this.misses++, BACKOFF.length - 1)];
    this.retry = window.setTimeout(() => void this.run(), (seconds ?? 10) * 1000);
  }

  private async fetch(signal: AbortSignal) {
    const state = await get<LiveState>('/api/state', signal);
    if (this.snapshot && this.snapshot.live.version !== state.version) {
      this.abort.abort();
      location.reload();
      return;
    }
    const ids = state.instances.slice(0, MOST_IDS).map(({ id }) => id);
    const [history, instances] = await Promise.all([
      get<LiveHistory>('/api/history', signal),
      ids.length > 0
        ? get<InstanceHistory>(`/api/history/instances?ids=${ids.join()}`, signal)
        : { instances: [] },
    ]);
    // Between two answers, another process may have begun.
    if (history.boot !== state.boot) return;
    this.snapshot = snapshotOf(state, history, instances);
    this.stale = false;
  }

  private async listen(signal: AbortSignal) {
    const headers = { 'last-event-id': String(this.snapshot?.sequence ?? 0) };
    const answer = await ask('/api/events', { headers, signal });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new Parser();
    while (reader) {
      const { value, done } = await reader.read();
      if (done || signal.aborted) return;
      this.heard = this.now = Date.now();
      for (const event of parser.take(value)) {
        this.take(event);
        // What follows is of another process.
        if (this.stale) return reader.cancel();
      }
    }
  }

  private take(event: Event) {
    if (event.name === 'hello') {
      const { boot, version } = this.snapshot?.live ?? {};
      this.stale = boot !== event.data.boot || version !== event.data.version;
      if (this.stale) return;
      this.link = 'live';
      this.misses = 0;
    }
    if (event.name === 'reset') {
      this.stale = true;
      return;
    }
    if (event.name !== 'hello') this.hurried = false;
    this.waiting.push(event);
    // At most once for each picture.
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  private draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const events = this.waiting.splice(0);
    if (this.snapshot && events.length > 0) this.snapshot = withEvents(this.snapshot, events);
  }
}

export const live = new Live();
