// Moments as people read them: one form for dates and one for times of the day, whatever the browser's language is.

const two = (part: number) => part.toString().padStart(2, '0');

/** A time of the day here. `at` is in seconds since 1970. */
export function timeOfDay(at: number): string {
  const date = new Date(at * 1000);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
}

/** A day and a time here, of RFC 3339; what is none stays as it is. */
export function dateAndTime(text: string): string {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return text;
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-');
  return `${day} ${timeOfDay(date.getTime() / 1000)}`;
}

/** A time of the day, with the date only where that is not the day of `now`. */
export function shortMoment(rfc3339: string | null, now = new Date()): string {
  const date = new Date(rfc3339 ?? '');
  if (Number.isNaN(date.getTime())) return '–';
  return date.toDateString() === now.toDateString()
    ? timeOfDay(date.getTime() / 1000)
    : dateAndTime(rfc3339 ?? '');
}
