import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// Rust writes script and style into each report, so both have fixed names, and nothing is loaded.
export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    // These know light-dark(), by which a canvas finds the colours of either theme.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: false,
    cssCodeSplit: false,
    emptyOutDir: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      input: 'src/report/report.ts',
      output: {
        format: 'es',
        entryFileNames: 'report.js',
        assetFileNames: 'report.[ext]',
      },
    },
  },
  resolve: process.env.VITEST ? { conditions: ['browser'] } : {},
  test: { environment: 'happy-dom', include: ['src/**/*.test.ts'] },
});
