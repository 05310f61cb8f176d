/**
 * Deposits: credited at once or announced, and the confirmation of an announced one.
 */
import { html } from '../../html.js';
import { replayed, useOnce } from '../../once.js';
import { usd } from '../../money.js';
import { useMode } from '../../router.js';
import { Dialog, confirm } from '../../ui/dialog.js';
import { CheckField, Form, MoneyField, TextField } from '../../ui/form.js';
import { say } from '../../ui/live.js';
import { WalletField, walletOf, walletWords } from './own.js';

/**
 * @param {{wallets: object[], value?: number, onClose: () => void, onDone: () => void}} props `value` is the
 *   preselected wallet
 */
export function Deposit({ wallets, value, onClose, onDone }) {
  const mode = useMode();
  const send = useOnce();
  const submit = async (values) => {
    const wallet = walletOf(values, 'wallet');
    const { amount, reference, pending } = values;
    const into = walletWords(wallet, wallets);
    const sure = await confirm({
      title: `Deposit ${usd(amount.text)}?`, danger: false, action: pending ? 'Announce deposit' : 'Deposit',
      text: pending
        ? `${usd(amount.text)} is announced for ${into}. It can be spent once the deposit is confirmed.`
        : `${usd(amount.text)} is added to ${into} and can be spent at once. A deposit cannot be taken back.`,
    });
    if (!sure) return;
    const answer = await send('/wallet/deposits', { wallet, amount, reference, pending });
    const done = answer.deposit.state === 'pending' ? `Announced ${usd(amount.text)} for ${into}.` : `${into} holds ${usd(answer.balance)} now.`;
    say(replayed(answer, done.charAt(0).toUpperCase() + done.slice(1)));
    onDone();
  };
  return html`<${Dialog} title="Deposit" onClose=${onClose}>
    <p>${mode === 'test'
    ? 'Test money: try any amount.'
    : 'Records money that arrived on your side. Name the payment, so that the same one is never counted twice.'}</p>
    <${Form} label="Deposit" action="Deposit…" onSubmit=${submit} onCancel=${onClose}>
      <${WalletField} name="wallet" label="Into" wallets=${wallets} value=${value} />
      <div class="fields-2">
        <${MoneyField} name="amount" label="Amount" required autofocus />
        <${TextField} name="reference" label="Reference" required autocomplete="off" maxlength="200" />
      </div>
      <p class="hint">The reference is what the bank or payment provider calls it. Each one counts once.</p>
      <${CheckField} name="pending" label="Not here yet: confirm it later" hint="It is shown as pending until someone confirms its reference." />
    <//>
  <//>`;
}

/** Confirms an announced deposit. */
export function ConfirmDeposit({ onClose, onDone }) {
  const send = useOnce();
  const submit = async ({ reference }) => {
    const answer = await send('/wallet/deposits/confirm', { reference });
    say(replayed(answer, `Confirmed ${usd(answer.deposit.amount)}: the wallet holds ${usd(answer.balance)} now.`));
    onDone();
  };
  return html`<${Dialog} title="Confirm a pending deposit" onClose=${onClose}>
    <p>The money of the deposit with this reference becomes spendable. This cannot be taken back.</p>
    <${Form} label="Confirm a pending deposit" action="Confirm deposit" onSubmit=${submit} onCancel=${onClose}>
      <${TextField} name="reference" label="Reference" required autofocus autocomplete="off" hint="As it was given when the deposit was announced." />
    <//>
  <//>`;
}
