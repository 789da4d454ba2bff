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

class Themes {
  current = $state<'light' | 'dark'>(dark.matches ? 'dark' : 'light');
  printing = $state(print.matches);

  constructor() {
    const update = () => {
      this.printing = print.matches;
      this.current = dark.matches && !print.matches ? 'dark' : 'light';
    };
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
export function themeOf(element: HTMLElement, scheme: 'light' | 'dark'): Theme {
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
