// In place of d3-interpolate, which d3-scale asks for all kinds of values: an axis has numbers, and the other kinds, colours
// above all, would be a tenth of the page.

type Between = (share: number) => number;

export function interpolateNumber(a: number, b: number): Between {
  return (share) => a * (1 - share) + b * share;
}

export function interpolateRound(a: number, b: number): Between {
  return (share) => Math.round(a * (1 - share) + b * share);
}

export { interpolateNumber as interpolate };

/** d3-scale exports a scale of several parts, which no chart here has. */
export function piecewise(): never {
  throw new Error('no chart has a scale of several parts');
}
