import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// Rust writes script and style into each report, and serves those of the live page (`--mode page`). So all have fixed
// names, and neither loads parts of the other.
export default defineConfig(({ mode }) => ({
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
      input: mode === 'page' ? 'src/live/page.ts' : 'src/report/report.ts',
      output: {
        format: 'es',
        entryFileNames: mode === 'page' ? 'page.js' : 'report.js',
        assetFileNames: mode === 'page' ? 'page.[ext]' : 'report.[ext]',
      },
    },
  },
  resolve: {
    alias: {
      'd3-format': fileURLToPath(new URL('src/charts/format.ts', import.meta.url)),
      'd3-interpolate': fileURLToPath(new URL('src/charts/interpolate.ts', import.meta.url)),
    },
    ...(process.env.VITEST ? { conditions: ['browser'] } : {}),
  },
  test: { environment: 'happy-dom', include: ['src/**/*.test.ts'] },
}));
