import { expect, test } from 'vitest';
import { csvOf, fileName } from './files';

const line = { hue: 'latency', words: String };

test('a chart as CSV has its lines and the ends of their bands, and no formula', () => {
  const ends = { least: [1, null], most: [3, null] };
  const lines = [
    { ...line, name: 'p95', column: [2, null], ends },
    { ...line, name: '=1+1, "x"', column: [0, 4] },
  ];
  expect(csvOf([0.5, 1.5], lines)).toBe(
    `seconds,p95,p95 least,p95 most,"'=1+1, ""x"""\r\n0.5,2,1,3,0\r\n1.5,,,,4\r\n`,
  );
  expect(fileName('Response time', 'png')).toBe('tenfold-response-time.png');
});
