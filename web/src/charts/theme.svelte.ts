// Colours for what is drawn on a canvas, which knows no variables. Paper is always light.

export interface Theme {
  throughput: string;
  latency: string;
  failures: string;
  users: string;
  queue: string;
  muted: string;
  text: string;
  line: string;
  panel: string;
}

const dark = window.matchMedia('(prefers-color-scheme: dark)');
const print = window.matchMedia('print');

/** What a chart is drawn for on paper (px): A4 within its margins. */
export const PAPER = 650;

export type Scheme = 'light' | 'dark';

class Themes {
  current = $state<Scheme>(dark.matches ? 'dark' : 'light');
  printing = $state(print.matches);
  /** By hand, against the system's. */
  chosen = $state<Scheme | null>(null);
  private readonly update = () => {
    this.printing = print.matches;
    this.current = print.matches ? 'light' : (this.chosen ?? (dark.matches ? 'dark' : 'light'));
  };

  choose(scheme: Scheme) {
    this.chosen = scheme;
    document.documentElement.dataset.theme = scheme;
    this.update();
  }

  constructor() {
    const update = this.update;
    dark.addEventListener('change', update);
    print.addEventListener('change', update);
    window.addEventListener('beforeprint', () => {
      this.printing = true;
      this.current = 'light';
    });
    window.addEventListener('afterprint', update);
  }
}

export const themes = new Themes();

/** The colours as an element has them under a scheme. */
export function themeOf(element: HTMLElement, scheme: Scheme): Theme {
  return coloured(element, scheme, (colour) => ({
    throughput: colour('var(--throughput)'),
    latency: colour('var(--latency)'),
    failures: colour('var(--failures)'),
    users: colour('var(--users)'),
    queue: colour('var(--queue)'),
    muted: colour('var(--muted)'),
    text: colour('var(--text)'),
    line: colour('var(--line)'),
    panel: colour('var(--panel)'),
  }));
}

/** A pale colour for what lies below a line of this hue. It hides what is behind it. */
export function paleOf(element: HTMLElement, scheme: Scheme, hue: string): string {
  return coloured(element, scheme, (colour) => colour(`color-mix(in srgb, var(--${hue}) 32%, var(--panel))`));
}

/** Stripes of a colour on another one. */
export function hatchOf(stripe: string, ground: string): CanvasPattern | null {
  const tile = document.createElement('canvas');
  const size = Math.round(8 * devicePixelRatio);
  [tile.width, tile.height] = [size, size];
  const ink = tile.getContext('2d');
  if (!ink) return null;
  ink.fillStyle = ground;
  ink.fillRect(0, 0, size, size);
  ink.strokeStyle = stripe;
  ink.lineWidth = size / 3;
  ink.beginPath();
  for (const from of [-size, 0, size]) {
    ink.moveTo(from, size);
    ink.lineTo(from + size, 0);
  }
  ink.stroke();
  return ink.createPattern(tile, 'repeat');
}

/** A colour that lets others through, for what lies between the ends of a line of this hue. */
export function bandOf(element: HTMLElement, scheme: Scheme, hue: string): string {
  return coloured(element, scheme, (colour) => colour(`color-mix(in srgb, var(--${hue}) 24%, transparent)`));
}

/** What a chart lies on. */
export function groundOf(element: HTMLElement, scheme: Scheme): string {
  return coloured(element, scheme, (colour) => colour('var(--panel)'));
}

function coloured<T>(element: HTMLElement, scheme: Scheme, take: (colour: (css: string) => string) => T): T {
  const probe = document.createElement('span');
  probe.style.colorScheme = scheme;
  element.append(probe);
  const taken = take((css) => {
    probe.style.color = css;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  return taken;
}
