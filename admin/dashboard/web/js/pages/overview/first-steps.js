/**
 * First steps: replaces the overview of an account without data.
 */
import { html } from '../../html.js';
import { href, useMode } from '../../router.js';
import { may, useSession } from '../../session.js';
import { CodeLine } from '../../ui/secret.js';
import { LinkButton } from '../../ui/button.js';
import { Section } from '../../ui/show.js';

export function FirstSteps() {
  const { place } = useSession();
  const mode = useMode();
  const create = may('admin');
  return html`<${Section} title="First steps" lead="Nothing has been spent and there is no agent yet. This is the way to the first call that passes the gate.">
    <ol class="steps">
      <li><h3>Create an agent</h3>
        <p>It stands for one program that spends: a bot, a pipeline, an assistant. It gets a wallet of its own.</p>
        ${create ? html`<${LinkButton} kind="primary" to=${href('/agents', { new: 1 })}>Create an agent<//>` : html`<p class="hint">An admin or owner of the account does this.</p>`}</li>
      <li><h3>Give it a cap</h3>
        <p>A policy says what it may spend in a run, a day and a month. Without one, no call is forwarded.</p></li>
      <li><h3>Store the provider’s key, and create a virtual key</h3>
        <p>The provider’s key is sealed and never leaves Tollgate. The agent gets a virtual key, which you can revoke at any moment.
          ${mode === 'test' && ' Both exist in live mode only.'}</p></li>
      <li><h3>Point the OpenAI client at the edge</h3>
        <p>Two settings, no change of code:</p>
        <${CodeLine} label="Base URL" text=${`OPENAI_BASE_URL=${place.edgeUrl}/v1`} what="the base URL" />
        <${CodeLine} label="API key" text="OPENAI_API_KEY=<the virtual key>" what="the line for the key" />
        <p><a href=${href('/connect')}>Connect</a> has a snippet for each client, and shows the first call as it arrives.</p></li>
    </ol>
  <//>`;
}
