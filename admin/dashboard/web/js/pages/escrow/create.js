/**
 * Creating an escrow: payer, payee, amount, and conditions that both parties can read.
 */
import { html } from '../../html.js';
import { Exact } from '../../api.js';
import { replayed, useOnce } from '../../once.js';
import { usd } from '../../money.js';
import { Dialog, confirm } from '../../ui/dialog.js';
import { AreaField, FieldError, Form, MoneyField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { WalletField, walletOf, walletWords } from '../wallet/own.js';

/** @param {{wallets: object[], onClose: () => void, onDone: (id: number) => void}} props */
export function CreateEscrow({ wallets, onClose, onDone }) {
  const send = useOnce();
  const submit = async (values) => {
    const [from, to] = [walletOf(values, 'fromWalletId'), walletOf(values, 'toWalletId')];
    if (from === to) throw new FieldError('toWalletId', 'Choose another wallet than the one that pays.');
    const conditions = conditionsOf(values.conditions);
    const amount = usd(values.amount.text);
    const sure = await confirm({
      title: 'Create this escrow?', action: 'Create escrow', danger: false,
      text: `${amount} from ${walletWords(from, wallets)} for ${walletWords(to, wallets)}. No money moves yet: it leaves the wallet when the escrow is funded.`,
    });
    if (!sure) return;
    const answer = await send('/escrow/create', { fromWalletId: from, toWalletId: to, amount: values.amount, conditions });
    say(replayed(answer, `Created escrow ${answer.escrow.id} over ${amount}.`));
    onDone(answer.escrow.id);
  };
  return html`<${Dialog} title="Create escrow" onClose=${onClose}>
    <${Form} label="Create escrow" action="Create escrow…" onSubmit=${submit} onCancel=${onClose}>
      <${WalletField} name="fromWalletId" label="Payer" wallets=${wallets} />
      <${WalletField} name="toWalletId" label="Payee" wallets=${wallets} own=${false} others />
      <${MoneyField} name="amount" label="Amount" required />
      <${AreaField} name="conditions" label="Conditions" optional rows="4" spellcheck=${false} class="input code" placeholder='{"deliverBy": "2026-12-01"}'
        hint="A JSON object that both sides can read. Tollgate keeps it and does not act on it." />
    <//>
  <//>`;
}

/** The typed JSON object with every digit; null for an empty field. */
function conditionsOf(text) {
  if (text.trim() === '') return null;
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FieldError('conditions', 'This is no JSON. Names and texts stand in double quotes: {"deliverBy": "2026-12-01"}');
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new FieldError('conditions', 'Conditions are a JSON object: {"deliverBy": "2026-12-01"}');
  }
  return new Exact(text.trim());
}
