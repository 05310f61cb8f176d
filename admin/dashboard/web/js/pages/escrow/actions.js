/**
 * The actions on an escrow that its state, the account's side and the user's role allow, or the reason why there is
 * none. The user confirms each action.
 */
import { html, useState } from '../../html.js';
import { useOnce } from '../../once.js';
import { usd } from '../../money.js';
import { may } from '../../session.js';
import { ActionButton, Button } from '../../ui/button.js';
import { Dialog, confirm } from '../../ui/dialog.js';
import { AreaField, Form } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { Section } from '../../ui/show.js';

/**
 * @param {{escrow: object, payer: object|null, payee: object|null, onDone: () => void}} props null: a wallet of another
 *   account
 */
export function Actions({ escrow, payer, payee, onDone }) {
  const [disputing, setDisputing] = useState(false);
  const send = useOnce();
  const words = { amount: usd(escrow.amount), payer: partyWords(payer, escrow.fromWalletId), payee: partyWords(payee, escrow.toWalletId) };
  const step = async (path, question, message) => {
    if (!(await confirm(question))) return;
    await settled(() => send(path, { escrowId: escrow.id }), message, onDone);
  };
  const { text, can } = next(escrow, { payer, payee });
  const buttons = {
    fund: html`<${ActionButton} kind="primary" run=${() => step('/escrow/fund', fundQuestion(words), `Funded escrow ${escrow.id} with ${words.amount}.`)}>Fund ${words.amount}<//>`,
    resolve: html`<span class="cell-actions">
      <${Button} kind="danger" onClick=${() => setDisputing(true)}>Dispute<//>
      <${ActionButton} kind="primary" run=${() => step('/escrow/release', releaseQuestion(words), `Released ${words.amount} to ${words.payee}.`)}>Release ${words.amount}<//></span>`,
  };
  return html`<${Section} title="What happens next"><div class="next-step"><p>${text}</p>${can && buttons[can]}</div>
    ${disputing && html`<${Dispute} escrow=${escrow} words=${words} send=${send} onClose=${() => setDisputing(false)} onDone=${onDone} />`}
  <//>`;
}

/** A sentence about the state, and the actions that the user may take in it. */
function next({ status }, { payer, payee }) {
  if (status === 'pending') return pendingStep(payer);
  if (status === 'funded') {
    const both = 'The money is held. Either side can release it to the payee, or dispute it.';
    if (!payer && !payee) return { text: both, can: null };
    return may('manager') ? { text: both, can: 'resolve' } : { text: `${both} That takes the role manager or above.`, can: null };
  }
  const ends = {
    disputed: 'Disputed: the money stays held until the operator of this installation releases or refunds it.',
    released: 'Done: the money went to the payee.',
    refunded: 'Done: the money went back to the payer.',
  };
  return { text: ends[status] ?? '', can: null };
}

function pendingStep(payer) {
  if (!payer) return { text: 'Nothing is held yet. The payer’s account has to fund it.', can: null };
  if (!may('admin')) return { text: 'Nothing is held yet. Funding it takes the role admin or above.', can: null };
  return { text: 'Nothing is held yet. Funding takes the money out of the payer’s wallet and holds it.', can: 'fund' };
}

function partyWords(wallet, number) {
  return wallet ? `${wallet.botId === null ? 'the account wallet' : wallet.name}` : `wallet ${number} of another account`;
}

const fundQuestion = ({ amount, payer, payee }) => ({
  title: `Fund with ${amount}?`, action: `Fund ${amount}`, danger: false,
  text: `${amount} leaves ${payer} now and is held for ${payee} until it is released, or disputed and decided by the operator.`,
});

const releaseQuestion = ({ amount, payee }) => ({
  title: `Release ${amount}?`, action: `Release ${amount}`, danger: false, text: `${amount} goes to ${payee}. It cannot be taken back.`,
});

function Dispute({ escrow, words, send, onClose, onDone }) {
  const submit = async ({ reason }) => {
    const call = () => send('/escrow/dispute', { escrowId: escrow.id, reason: reason || null });
    await settled(call, `Disputed escrow ${escrow.id}.`, onDone);
    onClose();
  };
  return html`<${Dialog} title=${`Dispute escrow ${escrow.id}?`} onClose=${onClose}>
    <p>${words.amount} stays held. Nobody can release it any more; only the operator of this installation decides whether it goes to ${words.payee} or back to ${words.payer}.</p>
    <${Form} label="Dispute" action="Dispute escrow" kind="danger" onSubmit=${submit} onCancel=${onClose}>
      <${AreaField} name="reason" label="Reason" optional autofocus maxlength="500" hint="Both sides and the operator read it." />
    <//>
  <//>`;
}

/** Runs an action, then reloads the escrow: someone else, or an earlier try of this request, may have changed it. */
async function settled(call, message, onDone) {
  try {
    await call();
    say(message);
  } catch (error) {
    const { body } = error;
    if (body?.replayed && body.success) say(message);
    else if (error.status === 409 || error.code === 'ESCROW_WRONG_STATE') say(error.message, 'error');
    else throw error;
  }
  onDone();
}
