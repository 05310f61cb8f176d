/**
 * Removing a person from the team, and the effect on the API keys that they created.
 */
import { html } from '../../html.js';
import { del, get, seg } from '../../api.js';
import { useLoad } from '../../load.js';
import { Dialog } from '../../ui/dialog.js';
import { CheckField, Form } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { Name } from '../../ui/show.js';
import { Loaded } from '../../ui/state.js';

/** Page size of the list of API keys. */
const KEYS_PAGE = 200;

/** The active API keys that a person created. */
export async function madeBy(person, signal) {
  const keys = [];
  for (let cursor; ;) {
    const page = await get('/api-keys', { limit: KEYS_PAGE, cursor }, { signal });
    keys.push(...page.apiKeys.filter((key) => key.createdBy === person.id && key.status === 'active'));
    if (page.nextCursor === null) return keys;
    cursor = page.nextCursor;
  }
}

/** @param {{person: {id: string, email: string}, onClose: () => void, onDone: () => void}} props */
export function RemovePerson({ person, onClose, onDone }) {
  const keys = useLoad((signal) => madeBy(person, signal), [person.id]);
  const submit = async ({ keep }) => {
    await del(`/api/user/team/${seg(person.id)}`, { query: keep ? { keepApiKeys: 'true' } : {} });
    say(`Removed ${person.email}.`);
    onDone();
  };
  return html`<${Dialog} title=${`Remove ${person.email} from the team?`} onClose=${onClose}>
    <p>The next click of theirs is refused: their sessions end at once. What they did stays in the audit log.</p>
    <${Loaded} load=${keys} rows=${1}>${(made) => html`<${Form} label="Remove person" action="Remove person" kind="danger" onSubmit=${submit} onCancel=${onClose}>
      ${made.length > 0 && html`<p>API keys that they made, revoked unless you keep them:</p>
        <ul>${made.map((key) => html`<li key=${key.keyId}><${Name} of=${key.name} /> <code class="id">${key.keyId}</code></li>`)}</ul>
        <${CheckField} name="keep" label="Keep these keys" hint="Programs can continue to use them, and so can any person who knows one." />`}
    <//>`}<//>
  <//>`;
}
