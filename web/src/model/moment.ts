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
