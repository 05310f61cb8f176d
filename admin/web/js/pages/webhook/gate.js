/**
 * What stands in place of the webhooks where the plan has none in the dashboard.
 */
import { html } from '../../html.js';
import { may } from '../../session.js';
import { plainWord } from '../../words.js';
import { LinkButton } from '../../ui/button.js';
import { Section } from '../../ui/show.js';
import { Empty } from '../../ui/state.js';

/** Whether an error says so. */
export const isGated = (error) => error?.code === 'PLAN_FEATURE';

/** The way up: an address of http(s) or of this site, or the page of plans. */
function upgradeAddress(given) {
  try {
    const address = new URL(given ?? '#/plan', location.href);
    return ['http:', 'https:'].includes(address.protocol) ? address.href : '#/plan';
  } catch {
    return '#/plan';
  }
}

/** @param {{error: {message: string, body: {plan?: string, upgradeTo?: string, upgradeUrl?: string}}}} props */
export function Gate({ error }) {
  const { plan, upgradeTo, upgradeUrl } = error.body;
  return html`<${Section} title="Not part of this plan">
    <${Empty} title=${plan ? `The plan ${plan} has no webhooks in the dashboard.` : error.message}>
      <p>Webhooks tell your systems at once when an agent is frozen, a spend waits, a cap denies or a balance is low.
        ${upgradeTo ? html` They come with the plan <strong>${plainWord(upgradeTo)}</strong>.` : ''} Programs with an API key can use them on any plan.</p>
      <p>${may('owner')
    ? html`<${LinkButton} kind="primary" to=${upgradeAddress(upgradeUrl)}>${upgradeTo ? `Upgrade to ${plainWord(upgradeTo)}` : 'See the plans'}<//>`
    : html`<${LinkButton} to="#/plan">See the plans<//>`}</p>
      ${!may('owner') && html`<p class="hint">An owner can change the plan.</p>`}
    <//>
  <//>`;
}
