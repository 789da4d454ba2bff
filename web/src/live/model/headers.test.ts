import { expect, test } from 'vitest';
import { headerLines, withoutSecrets } from './headers';

test('headers are lines, and those that may hold a secret are told by their name', () => {
  const text =
    'Content-Type: application/json\n\n Authorization: Bearer x\nX-Api-Key: y\nCookie: z\nAccept: key';
  expect(headerLines(text)).toHaveLength(5);
  expect(withoutSecrets(text)).toBe('Content-Type: application/json\n\nAccept: key');
});
