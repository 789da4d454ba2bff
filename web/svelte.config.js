import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default {
  preprocess: vitePreprocess(),
  // A style in the page would need a hash of its own in its policy.
  compilerOptions: { css: 'external', runes: true },
};
