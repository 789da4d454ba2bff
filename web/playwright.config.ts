import { defineConfig } from '@playwright/test';

// Debian's Chromium: none is downloaded. What it would fetch by itself is off, for a test counts every request.
export default defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  globalSetup: './tests/reports.ts',
  workers: 2,
  fullyParallel: true,
  reporter: 'list',
  use: {
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
  },
});
