/**
 * The user's sessions, and ending the others.
 */
import { html, useState } from '../../html.js';
import { del, post, seg } from '../../api.js';
import { Time } from '../../time.js';
import { ActionButton } from '../../ui/button.js';
import { confirm } from '../../ui/dialog.js';
import { say } from '../../ui/live.js';
import { Section } from '../../ui/show.js';
import { ListTable } from '../../ui/table.js';

export function Sessions() {
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((count) => count + 1);
  const end = async (one) => {
    const text = 'Whoever uses it has to sign in again.';
    if (!(await confirm({ title: 'End this session?', text, action: 'End session' }))) return;
    await del(`/api/user/sessions/${seg(one.id)}`);
    say('The session has ended.');
    again();
  };
  const endOthers = async () => {
    const text = 'Everybody who is signed in as you on another device or browser has to sign in again.';
    if (!(await confirm({ title: 'End all other sessions?', text, action: 'End other sessions' }))) return;
    await post('/api/user/sessions/revoke-others');
    say('All other sessions of yours have ended.');
    again();
  };
  const columns = [
    { label: 'Device', head: true, cell: (one) => html`<span class="agent-name"><bdi class="name" title=${one.userAgent}>${device(one.userAgent)}</bdi>
      ${one.current && html`<span class="cell-sub">this session</span>`}</span>` },
    { label: 'Address', wide: true, cell: (one) => html`<bdi class="nowrap">${one.ip ?? 'unknown'}</bdi>` },
    { label: 'Signed in', wide: true, cell: (one) => html`<${Time} at=${one.createdAt} />` },
    { label: 'Last seen', cell: (one) => html`<${Time} at=${one.lastSeenAt} />` },
    { label: 'Actions', hidden: true, cell: (one) => (one.current ? '' : html`<span class="cell-actions"><${ActionButton} small kind="danger" run=${() => end(one)}
      aria-label=${`End the session of ${device(one.userAgent)}`}>End<//></span>`) },
  ];
  return html`<${Section} title="Sessions" flush actions=${html`<${ActionButton} small run=${endOthers}>End other sessions<//>`}
    lead="Where you are signed in. A session ends by itself when it is not used for a while.">
    <${ListTable} path="/api/user/sessions" plural="sessions" refresh=${turn} caption="Sessions" columns=${columns} keyOf=${(one) => one.id} empty="There is no session." />
  <//>`;
}

/** Marks in the User-Agent header. Several browsers send another one's mark too: the first match counts. */
const BROWSERS = [['Edg/', 'Edge'], ['OPR/', 'Opera'], ['Firefox/', 'Firefox'], ['Chrom', 'Chrome'], ['Safari/', 'Safari']];
const SYSTEMS = [['iPhone', 'iPhone'], ['iPad', 'iPad'], ['Android', 'Android'], ['Windows', 'Windows'], ['Mac OS', 'macOS'], ['Linux', 'Linux']];

/** `Firefox on Linux`; the header itself for an unknown browser. */
function device(userAgent) {
  const known = (list) => list.find(([mark]) => userAgent.includes(mark))?.[1];
  const [browser, system] = [known(BROWSERS), known(SYSTEMS)];
  if (!browser) return userAgent || 'unknown device';
  return system ? `${browser} on ${system}` : browser;
}
