import { describe, expect, it } from 'vitest';
import { change, clock, grouped, rate, tickTime, time, timeOr } from './number';

describe('numbers', () => {
  // The same values as in crates/tenfold/src/words/number.rs.
  it('read as in the text report', () => {
    expect([1.0, 49.56, 1234.4].map(rate)).toEqual(['1.00', '49.6', '1234']);
    expect([1002, 20.6, 0.05, 0].map(time)).toEqual(['1.00 s', '21 ms', '50 us', '0 ms']);
  });

  it('show what is absent as a dash, and never as 0', () => {
    expect([timeOr(null), timeOr(null, 'grows'), timeOr(0)]).toEqual(['–', 'grows', '0 ms']);
  });

  it('fit an axis', () => {
    expect([0, 0.5, 20, 1500].map(tickTime)).toEqual(['0', '500 us', '20 ms', '1.5 s']);
    expect([5, 125, 3725].map(clock)).toEqual(['0:05', '2:05', '1:02:05']);
  });

  it('group thousands and sign changes', () => {
    expect([999, 1000, 1234567].map(grouped)).toEqual(['999', '1,000', '1,234,567']);
    expect([0.053, -0.2].map(change)).toEqual(['+5.3 %', '−20.0 %']);
  });
});
