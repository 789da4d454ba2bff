// The real program as a server, with an app whose second instance is slow.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import type { Page } from '@playwright/test';
import { PROGRAM } from './reports';

export const HOSTILE = '<img src=x onerror="document.title=1">';

const APP = `
const http = require('node:http');
const mine = process.env.TENFOLD_INSTANCE;
const wait = mine === '2' ? 60 : 15;
console.log('instance ' + mine + ' listens ${HOSTILE}\\u202e\\u001b[2J');
http.createServer((request, response) => {
  setTimeout(() => response.writeHead(request.url === '/fail' ? 500 : 200).end('Hello'), wait);
}).listen(process.env.PORT, '127.0.0.1');
`;

export interface Served {
  url: string;
  /** Ends it, and its instances. */
  end(): Promise<void>;
  process: ChildProcess;
}

/** A state directory of its own, with the app in it. */
export function home(): string {
  const path = mkdtempSync(`${tmpdir()}/tenfold-live-`);
  mkdirSync(path, { recursive: true });
  writeFileSync(`${path}/app.cjs`, APP);
  return path;
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

/** Starts the program with the page at a port, and waits until it is served. */
export async function serve(place: string, port: number, ...words: string[]): Promise<Served> {
  const [command, ...rest] = words;
  const child = spawn(PROGRAM, [command ?? '', '--admin', `127.0.0.1:${port}`, ...rest], {
    cwd: place,
    env: { ...process.env, TENFOLD_STATE_DIR: place },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (text: Buffer) => {
        said += text.toString();
        if (said.includes('page at')) resolve();
      });
    }
    child.once('exit', () => reject(new Error(`it ended: ${said}`)));
  });
  const end = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  return { url: `http://127.0.0.1:${port}/`, end, process: child };
}

/** What a page must never do. */
export function watched(page: Page, url: string): string[] {
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('blob:')) faults.push(request.url());
  });
  return faults;
}
