import { expect, test } from 'vitest';
import { Parser } from './stream';

test('events are whole, wherever the network cuts them', () => {
  const text = 'event: hello\ndata: {"boot":"a: b"}\n\n: \n\nid: 7\nevent: mark\ndata: {"text":"x"}\n\n';
  for (const size of [1, 7, text.length]) {
    const parser = new Parser();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...parser.take(text.slice(at, at + size)));
    expect(events).toEqual([
      { id: null, name: 'hello', data: { boot: 'a: b' } },
      { id: 7, name: 'mark', data: { text: 'x' } },
    ]);
  }
});
