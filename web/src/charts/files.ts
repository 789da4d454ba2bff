// One chart as a file.

import type { Column } from '../model/series';
import type { Line } from './TimePanel.svelte';

/** A row a moment, in the units of the lines (milliseconds, a second, cores); absent is empty. */
export function csvOf(at: number[], lines: Line[]): string {
  const columns: [string, Column][] = lines.flatMap(({ name, column, ends }): [string, Column][] => [
    [name, column],
    ...(ends
      ? ([
          [`${name} least`, ends.least],
          [`${name} most`, ends.most],
        ] as [string, Column][])
      : []),
  ]);
  const head = ['seconds', ...columns.map(([name]) => cell(name))];
  const rows = at.map((moment, row) => [
    String(Number(moment.toFixed(3))),
    ...columns.map(([, column]) => String(column[row] ?? '')),
  ]);
  return [head, ...rows].map((row) => `${row.join(',')}\r\n`).join('');
}

/** A spreadsheet would take some beginnings for a formula. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The name of a file for a chart. */
export function fileName(chart: string, kind: 'csv' | 'png'): string {
  return `tenfold-${chart.toLowerCase().replace(/[^a-z0-9]+/g, '-')}.${kind}`;
}

export function save(content: Blob, name: string) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export interface Look {
  ground: string;
  text: string;
  /** A name, the colour of its line, and its dashes. */
  lines: { name: string; colour: string; dash: number[] }[];
}

/** The plot below its title and legend. */
export function picture(plot: HTMLCanvasElement, title: string, look: Look): HTMLCanvasElement {
  const scale = plot.width / plot.clientWidth;
  const made = document.createElement('canvas');
  const draw = made.getContext('2d');
  const font = (weight: number) => `${weight} 13px system-ui, sans-serif`;
  const rows: { x: number; y: number }[] = [];
  let [x, y] = [12, 44];
  if (draw) draw.font = font(400);
  for (const { name } of look.lines) {
    const width = 46 + (draw?.measureText(name).width ?? 0);
    if (x > 12 && x + width > plot.clientWidth) [x, y] = [12, y + 20];
    rows.push({ x, y });
    x += width;
  }
  const top = y + 14;
  made.width = plot.width;
  made.height = plot.height + top * scale;
  if (!draw) return made;
  draw.fillStyle = look.ground;
  draw.fillRect(0, 0, made.width, made.height);
  draw.drawImage(plot, 0, top * scale);
  draw.scale(scale, scale);
  draw.fillStyle = look.text;
  draw.font = font(600);
  draw.fillText(title, 12, 20);
  draw.font = font(400);
  look.lines.forEach(({ name, colour, dash }, at) => {
    const { x, y } = rows[at] ?? { x: 0, y: 0 };
    draw.strokeStyle = colour;
    draw.lineWidth = 2;
    draw.setLineDash(dash);
    draw.beginPath();
    draw.moveTo(x, y - 4);
    draw.lineTo(x + 22, y - 4);
    draw.stroke();
    draw.fillText(name, x + 28, y);
  });
  return made;
}
