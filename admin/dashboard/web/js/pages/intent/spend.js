/**
 * A spend on behalf of an agent, checked against its caps like any other. Repeated requests carry it out once.
 */
import { html, useState } from '../../html.js';
import { useAgents } from '../../agents.js';
import { useOnce } from '../../once.js';
import { usd } from '../../money.js';
import { Dialog, confirm } from '../../ui/dialog.js';
import { useTyping } from '../../ui/filters.js';
import { AreaField, Form, MoneyField, TextField } from '../../ui/form.js';
import { say } from '../../ui/live.js';

const LIST = 'agents-to-spend-from';

/** @param {{agent?: string, onClose: () => void, onDone: (intentId: string) => void}} props */
export function Spend({ agent, onClose, onDone }) {
  const send = useOnce();
  const [typed, setTyped] = useState('');
  const { later } = useTyping();
  const { agents, nameOf } = useAgents(typed);
  // Besides the newest agents, the list offers those that match the typed text.
  const find = ({ target }) => later(() => setTyped(target.value.trim()));
  const submit = async (values) => {
    const amount = usd(values.amount.text);
    const sure = await confirm({
      title: `Spend ${amount}?`, action: `Spend ${amount}`, danger: false,
      text: `${amount} is spent by ${nameOf(values.agent)}${values.recipient ? ` for ${values.recipient}` : ''}, if its caps allow it. It cannot be taken back.`,
    });
    if (!sure) return;
    try {
      const answer = await send('/spend', bodyOf(values));
      say(outcomeText(answer, amount), answer.state === 'settled' ? 'ok' : 'info');
      onDone(answer.intent_id);
    } catch (error) {
      // An intent's id alone is no refusal: answers after which the outcome is unknown, or nothing is recorded, have it
      // too.
      if (error.body?.state !== 'blocked') throw error;
      say(`Refused: ${error.message}`, 'error');
      onDone(error.body.intent_id);
    }
  };
  return html`<${Dialog} title="Spend" onClose=${onClose}>
    <p>Counts against the agent’s caps and is paid from its wallet. An agent without a wallet only has the spend tracked.</p>
    <${Form} label="Spend" action="Spend…" onSubmit=${submit} onCancel=${onClose}>
      <${TextField} name="agent" label="Agent" required autofocus value=${agent} list=${LIST} autocomplete="off" onInput=${find} hint="Choose one, or type its id." />
      <datalist id=${LIST}>${agents.map(({ id, name }) => html`<option key=${id} value=${id}>${name ?? ''}</option>`)}</datalist>
      <div class="fields-2">
        <${MoneyField} name="amount" label="Amount" required />
        <${TextField} name="recipient" label="Recipient" optional maxlength="200" />
      </div>
      <${AreaField} name="description" label="Description" optional rows="2" maxlength="2000" />
      <${TextField} name="runId" label="Run id" optional maxlength="200" autocomplete="off" hint="Spends and calls with the same run id share the per-run cap." />
    <//>
  <//>`;
}

function bodyOf({ agent, amount, recipient, description, runId }) {
  return { agent: agent.trim(), amount, recipient: recipient || null, description: description || null, runId: runId || null };
}

function outcomeText({ state, balance, replayed }, amount) {
  const again = replayed ? ' An earlier request had done it; nothing was repeated.' : '';
  if (state !== 'settled') return `${amount} is above the approval threshold: the spend waits for approval.${again}`;
  return `Spent ${amount}.${balance === null ? '' : ` ${usd(balance)} is left in the wallet.`}${again}`;
}
