// The stream of events as text: fields on lines, events between empty lines (the WHATWG's "server-sent events").

import type {
  Define,
  End,
  Hello,
  LiveLoad,
  Mark,
  Measurement,
  PlanProgress,
  Reset,
  Rows,
  Tick,
} from '../../model/bindings';

export type Event = { id: number | null } & (
  | { name: 'hello'; data: Hello }
  | { name: 'reset'; data: Reset }
  | { name: 'define'; data: Define }
  | { name: 'tick'; data: Tick }
  | { name: 'rows'; data: Rows }
  | { name: 'mark'; data: Mark }
  | { name: 'load'; data: LiveLoad }
  | { name: 'plan'; data: PlanProgress }
  | { name: 'measurement'; data: Measurement }
  | { name: 'end'; data: End }
);

/** Takes the text in pieces, and gives what became whole. */
export class Parser {
  private rest = '';

  take(text: string): Event[] {
    const blocks = (this.rest + text).split('\n\n');
    this.rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => eventOf(block) ?? []);
  }
}

function eventOf(block: string): Event | null {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const at = line.indexOf(': ');
    // A line that begins with a colon only keeps the connection open.
    if (at > 0) fields.set(line.slice(0, at), line.slice(at + 2));
  }
  const [name, data, id] = [fields.get('event'), fields.get('data'), fields.get('id')];
  if (name === undefined || data === undefined) return null;
  return { id: id === undefined ? null : Number(id), name, data: JSON.parse(data) } as Event;
}
