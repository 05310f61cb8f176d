/**
 * The limits of a policy as a list of facts.
 */
import { html } from '../../html.js';
import { Time } from '../../time.js';
import { Badge, Facts, Money, Name } from '../../ui/show.js';

/** The limits of a policy: field, label and hint. */
export const LIMITS = [
  ['maxSpendPerDay', 'Per day', 'In a UTC day, all calls and spends together.'],
  ['maxSpendPerMonth', 'Per month', 'In a UTC month, all calls and spends together.'],
  ['maxSpendPerRun', 'Per run', 'Of calls and spends with the same run id.'],
  ['maxSpendPerTransaction', 'Per transaction', 'Of one spend from the wallet. Calls are not transactions.'],
  ['approvalThreshold', 'Approval above', 'A spend above this waits until someone approves it.'],
  ['lowBalanceThreshold', 'Low balance below', 'A wallet that falls below this is reported.'],
];

/** @param {{policy: object}} props */
export function PolicyFacts({ policy }) {
  return html`<${Facts} rows=${[
    ['Name', html`<${Name} of=${policy.name} />`],
    ['Cap', policy.capEnabled ? html`<${Badge} of="on" tone="ok" />` : html`<${Badge} of="off: calls are denied" tone="bad" />`],
    ...LIMITS.map(([field, label]) => [label, html`<${Money} of=${policy[field]} none="not set" />`]),
    ['Changed', html`<${Time} at=${policy.updatedAt} />`],
  ]} />`;
}
