/**
 * One entry of the trail with all its fields, as they were hashed. The address holds its number, so it can be linked
 * to.
 */
import { html } from '../../html.js';
import { get, sourceOf } from '../../api.js';
import { part, pretty } from '../../json.js';
import { useLoad } from '../../load.js';
import { useNamesOf } from '../../names.js';
import { href } from '../../router.js';
import { Time } from '../../time.js';
import { Button, LinkButton } from '../../ui/button.js';
import { Dialog } from '../../ui/dialog.js';
import { Hash, Source } from '../../ui/hash.js';
import { Facts, Id } from '../../ui/show.js';
import { Loaded } from '../../ui/state.js';
import { AgentLink, By } from '../../ui/who.js';
import { Changes } from './changes.js';

/** @returns {Promise<{entry: object, line: string, total: number}|null>} `line` is the entry byte for byte */
async function find(seq, signal) {
  const answer = await get('/audit', { limit: 1, before: seq + 1 }, { signal });
  const entry = answer.logs[0];
  if (entry?.seq !== seq) return null;
  return { entry, line: part(sourceOf(answer), ['logs', 0]), total: answer.total };
}

/** @param {{seq: number, onClose: () => void, go: (seq: number) => void}} props */
export function Entry({ seq, onClose, go }) {
  const load = useLoad((signal) => find(seq, signal), [seq]);
  return html`<${Dialog} title=${`Entry ${seq}`} onClose=${onClose} wide>
    <div class="entry">
      ${!load.loading && !load.error && !load.data
    ? html`<p class="alert alert-warn">The trail of this mode has no entry ${seq}.</p>`
    : html`<${Loaded} load=${load} label="Loading the entry">${(data) => html`<${Body} ...${data} />`}<//>`}
    </div>
    <div class="actions">
      <${Button} disabled=${!load.data || seq <= 1} onClick=${() => go(seq - 1)}>Earlier<//>
      <${Button} disabled=${!load.data || seq >= load.data.total} onClick=${() => go(seq + 1)}>Later<//>
      <${Button} kind="primary" onClick=${onClose}>Close<//>
    </div>
  <//>`;
}

function Body({ entry, line }) {
  const broken = entry.type === 'unreadable';
  const names = useNamesOf([entry.actor, entry.agentId]);
  return html`<div class="stack">
    ${broken && html`<p class="alert alert-error">Somebody changed this entry’s line in the store by hand. It is shown as it stands there.</p>`}
    <${Facts} rows=${[
    ['Type', html`<code>${entry.type}</code>`],
    ['When', html`<${Time} at=${entry.at} full />`],
    ['Agent', entry.agentId ? html`<${AgentLink} id=${entry.agentId} name=${names.of(entry.agentId)?.name} />` : html`<span class="muted">about none</span>`],
    ['By', html`<${By} id=${entry.actor} names=${names} />`],
    ['Id', html`<${Id} of=${entry.id} />`],
    ['Hash', html`<${Hash} of=${entry.hash} what=${`the hash of entry ${entry.seq}`} />`],
    ['Previous hash', html`<${Hash} of=${entry.previousHash} what="the previous hash" />`],
  ]} />
    <${Changes} type=${entry.type} data=${entry.data} />
    <${Source} label="As it was hashed" what="the entry’s line" text=${pretty(line)} copy=${line} />
    <${Related} entry=${entry} />
  </div>`;
}

/** Link to the record that the entry is about. */
function Related({ entry }) {
  const { data = {} } = entry;
  const links = [
    entry.type?.startsWith('decision.') && ['Open the decision', href('/decisions', entry.id)],
    entry.type === 'decisions.denied' && ['Open the decision', href('/decisions', data.decisionId)],
    data.escrowId && ['Open the escrow', href('/escrow', data.escrowId)],
    data.webhookId && entry.type !== 'webhook.deleted' && ['Open the webhook', href('/webhooks', data.webhookId)],
  ].filter(Boolean);
  return links.length > 0 && html`<div class="actions">${links.map(([label, to]) => html`<${LinkButton} key=${to} small to=${to}>${label}<//>`)}</div>`;
}
