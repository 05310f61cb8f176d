/**
 * A virtual key for the snippets: an existing one, or a new one, whose secret is shown while this page is open and
 * stored nowhere in the browser.
 */
import { html, useState } from '../../html.js';
import { get, post, seg } from '../../api.js';
import { href } from '../../router.js';
import { may } from '../../session.js';
import { ActionButton } from '../../ui/button.js';

/** Name of a key created on this page. */
const NAME = 'Connect page';

/** Id of this element, for links to it. */
export const KEY_PLACE = 'connect-key';
/** Most keys scanned for an active one, page by page. */
const SEARCHED_MAX = 1000;
const PAGE = 200;

/** Whether the agent has an active virtual key; true if it has too many to scan. @returns {Promise<{any: boolean}>} */
export async function hasKey(agent, signal) {
  for (let seen = 0, cursor; seen < SEARCHED_MAX; seen += PAGE) {
    const { virtualKeys, nextCursor } = await get(`/agents/${seg(agent.id)}/virtual-keys`, { limit: PAGE, cursor }, { signal });
    if (virtualKeys.some(({ status }) => status === 'active')) return { any: true };
    if (nextCursor === null) return { any: false };
    cursor = nextCursor;
  }
  return { any: true };
}

/** @param {{agent: object, secret: string|null, onSecret: (secret: string) => void}} props */
export function Key({ agent, secret, onSecret }) {
  const [failed, setFailed] = useState(null);
  const create = async () => {
    setFailed(null);
    try {
      onSecret((await post(`/agents/${seg(agent.id)}/virtual-keys`, { name: NAME })).secret);
    } catch (error) {
      setFailed(error.message);
    }
  };
  const keys = html`<a href=${href('/agents', agent.id, { tab: 'keys' })}>keys of the agent</a>`;
  if (secret) {
    return html`<p class="alert alert-warn" role="status">A new key, “${NAME}”, stands below until you leave this page. It cannot be shown again: copy it now. It is among the ${keys}, where it can be revoked.</p>`;
  }
  if (!may('admin')) return html`<p class="hint">Virtual keys are made by an admin or owner of the account.</p>`;
  return html`<div class="next-step" id=${KEY_PLACE}><p class="hint">Use a virtual key that you have, or make one. The secrets of those that exist cannot be shown: ${keys}.</p>
    <${ActionButton} run=${create}>Create a virtual key<//>
    ${failed && html`<p class="alert alert-error" role="alert" dir="auto">${failed}</p>`}</div>`;
}
