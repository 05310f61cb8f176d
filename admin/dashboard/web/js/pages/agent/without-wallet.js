/**
 * Agents that have only a policy or a key. The list of agents contains only those with a wallet.
 */
import { html } from '../../html.js';
import { get } from '../../api.js';
import { useLoad } from '../../load.js';
import { useMode } from '../../router.js';
import { count } from '../../words.js';
import { Section } from '../../ui/show.js';
import { AgentLink } from '../../ui/who.js';

const LEAD = 'They have keys or a policy and are not in the list above. A mistyped id in the request for a key makes one: revoke its keys, and it is gone.';

/** Renders nothing if there are none. */
export function WithoutWallet() {
  const mode = useMode();
  const { data } = useLoad((signal) => get('/overview', { days: 1 }, { signal }), [mode]);
  if (!data || data.withoutWallet.length === 0) return null;
  const rest = data.withoutWalletTotal - data.withoutWallet.length;
  return html`<${Section} title="Agents without a wallet" lead=${LEAD}>
    <ul>${data.withoutWallet.map((id) => html`<li key=${id}><${AgentLink} id=${id} /></li>`)}</ul>
    ${rest > 0 && html`<p class="hint">and ${count(rest, 'more', 'more')}</p>`}
  <//>`;
}
