// A report: its document, and what it says in words.

import type { Comparison, Load, Plan, Sizing, Summary } from './bindings';

export type Report =
  | { kind: 'plan'; document: Plan; summary: Summary }
  | { kind: 'load'; document: Load; summary: Summary }
  | { kind: 'cost'; document: Sizing; summary: Summary }
  | { kind: 'compare'; document: Comparison; summary: Summary };

const SCHEMAS: Record<Report['kind'], string> = {
  plan: 'tenfold/plan/1',
  load: 'tenfold/load/1',
  cost: 'tenfold/cost/1',
  compare: 'tenfold/compare/1',
};

/** Puts both halves of a report together. Throws a sentence for people when they are not what this page reads. */
export function parse(document: string, summary: string): Report {
  return reportOf(json(document), json(summary) as Summary);
}

/** The same of values. */
export function reportOf(document: unknown, said: Summary): Report {
  const value = document as { schema?: unknown };
  const expected = SCHEMAS[said.kind];
  if (value.schema !== expected) {
    throw new Error(
      `This page reads ${expected}, and the report holds ${String(value.schema)}: write it again.`,
    );
  }
  return { kind: said.kind, document: value, summary: said } as unknown as Report;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('The data of this report is damaged: write it again with tenfold report.');
  }
}
