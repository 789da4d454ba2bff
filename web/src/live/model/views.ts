// The views, each with its route, and which of them a command opens with.

import type { LiveKind } from '../../model/bindings';

export type ViewName = 'run' | 'instances' | 'plan' | 'cost' | 'history';

export const VIEWS: { name: ViewName; heading: string }[] = [
  { name: 'run', heading: 'Run' },
  { name: 'instances', heading: 'Instances' },
  { name: 'plan', heading: 'Plan' },
  { name: 'cost', heading: 'Cost' },
  { name: 'history', heading: 'History' },
];

/** `#/history/12` is a history's route. */
export function viewOf(hash: string): ViewName | null {
  const [sign, name] = hash.split('/');
  return sign === '#' ? (VIEWS.find((view) => view.name === name)?.name ?? null) : null;
}

export function firstView(kind: LiveKind): ViewName {
  return kind === 'plan' ? 'plan' : kind === 'balance' ? 'instances' : 'run';
}
