// The real program as a server, with an app that serves one request at a time.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import type { Page } from '@playwright/test';
import { PROGRAM } from './reports';

export const HOSTILE = '<img src=x onerror="document.title=1">';

/** It waits and computes nothing, so that a busy machine changes little. SLOW is the number of a slow instance. */
const APP = `
const http = require('node:http');
const mine = process.env.TENFOLD_INSTANCE;
const wait = mine === process.env.SLOW ? 70 : 20;
console.log('instance ' + mine + ' listens ${HOSTILE}\\u202e\\u001b[2J');
let last = Promise.resolve();
http.createServer((request, response) => {
  last = last.then(() => new Promise((done) => setTimeout(done, wait)));
  const status = request.url.startsWith('/fail') ? 500 : 200;
  void last.then(() => response.writeHead(status).end('Hello'));
}).listen(process.env.PORT, '127.0.0.1');
`;

export interface Served {
  url: string;
  /** Ends it, and its instances. */
  end(): Promise<void>;
}

/** What runs. A test that fails does not end it. */
const children = new Set<ChildProcess>();
/** It is gone when the tests end, with all that is in it. */
const homes = mkdtempSync(`${tmpdir()}/tenfold-live-`);
process.on('exit', () => {
  for (const child of children) child.kill('SIGTERM');
  rmSync(homes, { recursive: true, force: true });
});

/** A state directory of its own, with the app in it. */
export function home(name = 'app.cjs'): string {
  const path = mkdtempSync(`${homes}/`);
  writeFileSync(`${path}/${name}`, APP);
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

export function run(place: string, words: string[]): ChildProcess {
  const child = spawn(PROGRAM, words, {
    cwd: place,
    env: { ...process.env, TENFOLD_STATE_DIR: place },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Starts the program with the page at an address, and waits until it is served. */
export async function serve(place: string, admin: string, ...words: string[]): Promise<Served> {
  const [command, ...rest] = words;
  const child = run(place, [command ?? '', '--admin', admin, ...rest]);
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
  return { url: `http://127.0.0.1:${admin.split(':')[1]}/`, end };
}

/** The words of `up` for some instances of the app. */
export function up(count: number, ...command: string[]): string[] {
  return ['up', '-n', String(count), '--slots', '4', '--listen', '127.0.0.1:0', '--', ...command];
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

/** What the head says of what runs. */
export function status(page: Page) {
  return page.getByRole('banner').getByRole('status');
}
