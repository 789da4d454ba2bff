// Times as Locust's users write them.

const UNITS: Record<string, number> = { h: 3600, m: 60, s: 1 };

/** Seconds of `20`, `20s`, `3m`, `2h` or `1h20m`; null of what is none. */
export function seconds(text: string): number | null {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed);
  const parts = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(trimmed);
  if (!parts || trimmed === '') return null;
  return ['h', 'm', 's'].reduce((sum, unit, at) => sum + Number(parts[at + 1] ?? 0) * (UNITS[unit] ?? 1), 0);
}
