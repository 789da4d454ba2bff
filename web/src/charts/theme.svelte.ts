// Colours for what is drawn on a canvas, which knows no variables. Paper is always light.

export interface Theme {
  throughput: string;
  latency: string;
  failures: string;
  users: string;
  queue: string;
  muted: string;
  line: string;
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
  const probe = document.createElement('span');
  probe.style.colorScheme = scheme;
  element.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const theme = {
    throughput: colour('throughput'),
    latency: colour('latency'),
    failures: colour('failures'),
    users: colour('users'),
    queue: colour('queue'),
    muted: colour('muted'),
    line: colour('line'),
  };
  probe.remove();
  return theme;
}
