import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

const markup = ['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'write', 'writeln'];

export default ts.config(
  { ignores: ['dist', 'node_modules', 'test-results', 'src/model/bindings.ts'] },
  js.configs.recommended,
  ts.configs.strict,
  svelte.configs['flat/recommended'],
  { languageOptions: { globals: { ...globals.browser, ...globals.node } } },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig } },
  },
  {
    rules: {
      'svelte/no-at-html-tags': 'error',
      'svelte/no-inline-styles': ['error', { allowTransitions: false }],
      // Names of apps and routes are text, whatever they look like.
      'no-restricted-properties': ['error', ...markup.map((property) => ({ property }))],
    },
  },
);
