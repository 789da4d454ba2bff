import { describe, expect, it } from 'vitest';
import document from '../../tests/documents/load.json';
import type { Load } from './bindings';
import { extremes, seriesOf } from './series';

const load = document as unknown as Load;

describe('a load over time', () => {
  it('has a value a window', () => {
    const series = seriesOf(load);
    expect(series.at.length).toBe(load.windows.length);
    expect(series.requests[3]).toBe(load.windows[3]?.throughput);
    expect(series.p95[3]).toBe(load.windows[3]?.response_ms.p95);
  });

  it('shows a missing second as a gap', () => {
    const windows = load.windows.filter((_, index) => index !== 5);
    const series = seriesOf({ ...load, windows });
    expect(series.at.length).toBe(load.windows.length);
    expect(series.requests[5]).toBeNull();
    expect(series.users[5]).toBeNull();
    expect([...series.at].sort((a, b) => a - b)).toEqual(series.at);
  });

  it('draws the steps of a long run with their least and greatest values', () => {
    const spread = (mean: number) => ({ least: [0, 1, 2], mean: [mean, mean, mean], most: [9, 8, 7] });
    const timeline = {
      start_s: [0, 6, 18],
      seconds: [6, 6, 6],
      requests: spread(5),
      failures: spread(0),
      p50: spread(2),
      p95: spread(3),
      p99: spread(4),
      users: spread(1),
      in_flight: spread(1),
    };
    const series = seriesOf({ ...load, timeline });
    expect(series.at).toEqual([3, 9, 12.001, 21]);
    expect(series.p99).toEqual([4, 4, null, 4]);
    expect(series.ends?.p99).toEqual({ least: [0, 1, null, 2], most: [9, 8, null, 7] });
  });

  it('knows the end of the warm-up', () => {
    const windows = load.windows.map((window, index) => ({
      ...window,
      stage: index < 3 ? ('warm_up' as const) : ('measured' as const),
    }));
    expect(seriesOf({ ...load, windows }).warmUpTo).toBeCloseTo(3, 0);
    expect(seriesOf({ ...load, windows: [] }).warmUpTo).toBe(0);
  });
});

it('has extremes within a part, and none where nothing is known', () => {
  expect(extremes([[9, 3, null, 5, 0]], 1, 3)).toEqual([3, 5]);
  expect(extremes([[9, null, 0]], 1, 1)).toBeNull();
});
