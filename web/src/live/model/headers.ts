// Headers as a person writes them: a line each.

/** Names of headers whose values are no business of a disk. */
const SECRET = /authorization|cookie|token|secret|password|key|session|signature/i;

export function headerLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** The lines without those that may hold a secret. */
export function withoutSecrets(text: string): string {
  return text
    .split('\n')
    .filter((line) => !SECRET.test(line.split(':')[0] ?? ''))
    .join('\n');
}
