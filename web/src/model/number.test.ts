import { describe, expect, it } from 'vitest';
import { change, clock, duration, grouped, rate, tickTime, time, timeOr } from './number';

describe('numbers', () => {
  // The same values as in crates/tenfold/src/words/number.rs.
  it('read as in the text report', () => {
    expect([1.0, 49.56, 1234.4].map(rate)).toEqual(['1.00', '49.6', '1234']);
    expect([1002, 20.6, 0.05, 0].map(time)).toEqual(['1.00 s', '21 ms', '50 us', '0 ms']);
    expect([0.069, 0.11, 0.9996, 12340].map(time)).toEqual(['69 us', '110 us', '1.00 ms', '12.3 s']);
    const durations = [0.5, 49.06, 99.96, 327, 3626.7].map(duration);
    expect(durations).toEqual(['500 ms', '49.1 s', '1 min 40 s', '5 min 27 s', '1 h 0 min']);
    expect([0, 999, 8000, 12345, 2365945].map(grouped)).toEqual(['0', '999', '8000', '12,345', '2,365,945']);
    expect(rate(98765.4)).toBe('98,765');
  });

  it('show what is absent as a dash, and never as 0', () => {
    expect([timeOr(null), timeOr(null, 'grows'), timeOr(0)]).toEqual(['–', 'grows', '0 ms']);
  });

  it('fit an axis', () => {
    expect([0, 0.5, 20, 1500].map(tickTime)).toEqual(['0', '500 us', '20 ms', '1.5 s']);
    expect([5, 125, 3725].map(clock)).toEqual(['0:05', '2:05', '1:02:05']);
  });

  it('sign changes', () => {
    expect([0.053, -0.2].map(change)).toEqual(['+5.3 %', '−20.0 %']);
  });
});
