// Numbers as the text report writes them (crates/tenfold/src/words/number.rs): about three digits.

/** A rate (1/s). */
export function rate(perSecond: number): string {
  if (perSecond < 9.995) return perSecond.toFixed(2);
  if (perSecond < 99.95) return perSecond.toFixed(1);
  return grouped(perSecond);
}

/** A time (ms). */
export function time(ms: number): string {
  if (ms <= 0) return '0 ms';
  if (ms < 0.9995) return `${(ms * 1e3).toFixed(0)} us`;
  if (ms < 9.995) return `${ms.toFixed(2)} ms`;
  if (ms < 999.5) return `${ms.toFixed(0)} ms`;
  if (ms < 9995) return `${(ms / 1e3).toFixed(2)} s`;
  return duration(ms / 1e3);
}

/** How long something took (s). */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (seconds < 0.95) return time(seconds * 1e3);
  if (seconds < 99.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 3599.5) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A time (ms) where it is known: absent is no zero. */
export function timeOr(ms: number | null, absent = '–'): string {
  return ms === null ? absent : time(ms);
}

/** A time (ms) at an axis: no more digits than its step needs. */
export function tickTime(ms: number): string {
  if (ms === 0) return '0';
  if (ms < 1) return `${Number((ms * 1e3).toPrecision(3))} us`;
  return ms < 1000 ? `${Number(ms.toPrecision(3))} ms` : `${Number((ms / 1e3).toPrecision(3))} s`;
}

/** A count. From five digits on, thousands stand apart. */
export function grouped(count: number): string {
  const digits = Math.round(count).toString();
  return digits.length < 5 ? digits : digits.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

/** A share in percent, with its sign. */
export function change(share: number): string {
  const percent = share * 100;
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent).toFixed(1)} %`;
}

/** A number of things, by the word for one of them. */
export function counted(count: number, thing: string): string {
  return `${grouped(count)} ${thing}${count === 1 ? '' : 's'}`;
}

/** A time since the beginning of a run, as 2:05. */
export function clock(seconds: number): string {
  const whole = Math.round(seconds);
  const two = (n: number) => n.toString().padStart(2, '0');
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
