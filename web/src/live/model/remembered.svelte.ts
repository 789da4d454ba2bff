// What a person has typed or chosen, kept by the browser for this address: it outlives a reload, the tab, and the process
// that is watched.

type Fields = Record<string, unknown>;

/** A state that begins with what was kept of it. `kept` leaves out what must not be written to a disk. */
export function remembered<T extends object>(
  key: string,
  initial: T,
  kept: (value: T) => T = (all) => all,
): T {
  const value = $state({ ...initial, ...fitting(initial as Fields, read(key)) });
  $effect.root(() => {
    $effect(() => write(key, kept($state.snapshot(value) as T)));
  });
  return value;
}

/** A plain text that is kept; null where there is none, or a browser keeps nothing. */
export function read(key: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(`tenfold.${key}`) ?? 'null');
  } catch {
    return null;
  }
}

export function write(key: string, value: unknown) {
  try {
    localStorage.setItem(`tenfold.${key}`, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing, or is full, forgets. Nothing else depends on it.
  }
}

/** Another version may have kept other fields, or other kinds of values. */
function fitting(initial: Fields, found: unknown): Fields {
  if (typeof found !== 'object' || found === null) return {};
  const fits = ([name, value]: [string, unknown]) =>
    name in initial &&
    Array.isArray(value) === Array.isArray(initial[name]) &&
    (value === null || initial[name] === null || typeof value === typeof initial[name]);
  return Object.fromEntries(Object.entries(found).filter(fits));
}
