/**
 * The team: users with their roles, and open invitations.
 */
import { html, useState } from '../html.js';
import { del, seg } from '../api.js';
import { may, useSession } from '../session.js';
import { Time } from '../time.js';
import { ActionButton, Button } from '../ui/button.js';
import { confirm } from '../ui/dialog.js';
import { say } from '../ui/live.js';
import { Badge, Facts, Name, PageHead, Section } from '../ui/show.js';
import { ListTable } from '../ui/table.js';
import { ROLES } from '../roles.js';
import { Invite } from './team/invite.js';
import { RemovePerson } from './team/remove.js';
import { ChangeRole } from './team/role.js';

export default function Team() {
  const { user } = useSession();
  const [turn, setTurn] = useState(0);
  const [inviting, setInviting] = useState(false);
  const [changing, setChanging] = useState(null);
  const [removing, setRemoving] = useState(null);
  const again = () => setTurn((count) => count + 1);
  const owner = may('owner');
  const actions = (person) => html`<span class="cell-actions">
    <${Button} small onClick=${() => setChanging(person)} aria-label=${`Change role of ${person.email}`}>Change role<//>
    <${Button} small kind="danger" onClick=${() => setRemoving(person)} aria-label=${`Remove ${person.email}`}>Remove<//>
  </span>`;
  const columns = [
    { label: 'Person', head: true, cell: (person) => html`<span class="wraps"><${Name} of=${person.email} /></span>${person.id === user.id && html` <span class="muted">you</span>`}` },
    { label: 'Role', cell: (person) => html`<${Badge} of=${person.role} tone="plain" />` },
    { label: 'Second factor', wide: true, cell: (person) => (person.totpEnabled ? 'on' : html`<span class="muted">off</span>`) },
    { label: 'Last signed in', wide: true, cell: (person) => html`<${Time} at=${person.lastLoginAt} none="never" />` },
    owner && { label: 'Actions', hidden: true, cell: actions },
  ].filter(Boolean);
  const invite = owner && html`<${Button} kind="primary" onClick=${() => setInviting(true)}>Invite person<//>`;
  return html`<div class="stack">
    <${PageHead} title="Team" actions=${invite}>The people who can sign in to this account. A changed role binds their very next click.<//>
    <${Section} title="People" flush>
      <${ListTable} path="/api/user/team" plural="users" refresh=${turn} caption="People" columns=${columns} keyOf=${(person) => person.id}
        empty="There are no users." />
    <//>
    ${owner && html`<${Invitations} turn=${turn} again=${again} />`}
    <${Section} title="What each role may do"><${Facts} rows=${ROLES} /><//>
    ${inviting && html`<${Invite} onClose=${() => setInviting(false)} onDone=${again} />`}
    ${removing && html`<${RemovePerson} person=${removing} onClose=${() => setRemoving(null)} onDone=${() => { setRemoving(null); again(); }} />`}
    ${changing && html`<${ChangeRole} person=${changing} onClose=${() => setChanging(null)} onDone=${() => { setChanging(null); again(); }} />`}
  </div>`;
}

function Invitations({ turn, again }) {
  const revoke = async (invitation) => {
    const text = 'Its link stops working. You can invite them again.';
    if (!(await confirm({ title: `Revoke the invitation of ${invitation.email}?`, text, action: 'Revoke invitation' }))) return;
    await del(`/api/user/invitations/${seg(invitation.id)}`);
    say(`Revoked the invitation of ${invitation.email}.`);
    again();
  };
  const columns = [
    { label: 'Email', head: true, cell: (invitation) => html`<span class="wraps"><${Name} of=${invitation.email} /></span>` },
    { label: 'Role', cell: (invitation) => html`<${Badge} of=${invitation.role} tone="plain" />` },
    { label: 'Invited', wide: true, cell: (invitation) => html`<${Time} at=${invitation.createdAt} />` },
    { label: 'Link ends', wide: true, cell: (invitation) => html`<${Time} at=${invitation.expiresAt} />` },
    { label: 'Actions', hidden: true, cell: (invitation) => html`<span class="cell-actions"><${ActionButton} small kind="danger"
      run=${() => revoke(invitation)} aria-label=${`Revoke the invitation of ${invitation.email}`}>Revoke<//></span>` },
  ];
  return html`<${Section} title="Open invitations" flush>
    <${ListTable} path="/api/user/invitations" plural="invitations" refresh=${turn} caption="Open invitations" columns=${columns}
      keyOf=${(invitation) => invitation.id} empty="No invitation waits to be accepted." />
  <//>`;
}
