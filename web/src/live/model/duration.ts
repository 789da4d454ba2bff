// Times and lists of numbers as people write them, and a time that is left.

const UNITS: Record<string, number> = { h: 3600, m: 60, s: 1 };

/** Seconds of `20`, `20s`, `3m`, `2h` or `1h20m`; null of what is none. */
export function seconds(text: string): number | null {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed);
  const parts = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(trimmed);
  if (!parts || trimmed === '') return null;
  return ['h', 'm', 's'].reduce((sum, unit, at) => sum + Number(parts[at + 1] ?? 0) * (UNITS[unit] ?? 1), 0);
}

/** Numbers above 0 with commas; null of what is no such list. */
export function numbers(text: string): number[] | null {
  const found = text.split(',').map((part) => (part.trim() === '' ? NaN : Number(part)));
  return found.every((one) => one > 0) ? found : null;
}

/** About so many seconds, in words. */
export function timeLeft(seconds: number): string {
  if (seconds < 90) return `about ${Math.max(5, Math.round(seconds / 5) * 5)} s`;
  return `about ${Math.round(seconds / 60)} min`;
}
