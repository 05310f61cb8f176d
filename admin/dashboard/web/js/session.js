/**
 * Who is signed in, in which mode the tab works, and what the role may do. The server enforces roles; here they only decide
 * what is offered.
 */
import { store, useStore } from './store.js';

const ROLES = ['viewer', 'manager', 'admin', 'owner'];
const MODE_KEY = 'tollgate.mode';

/** @returns {'live'|'test'} */
function rememberedMode() {
  return sessionStorage.getItem(MODE_KEY) === 'test' ? 'test' : 'live';
}

/** `status`: loading until the first answer of /me, then in or out; or unknown, when the server did not tell who is signed in. */
export const session = store({
  status: 'loading', user: null, account: null, session: null, csrfToken: null, mode: rememberedMode(),
  /** What /installation tells of this one; null until it did. */
  place: null,
  /** Where to go after signing in. */
  wanted: null,
  /** Why it is not known who is signed in. */
  error: null,
  /** Why one has to sign in again. */
  reason: null,
});

/** Watches the session. */
export const useSession = () => useStore(session);

/** Takes the answer of login, me, accept, password reset. */
export function signedIn(answer) {
  const { user, account } = answer;
  session.set({ status: 'in', user, account, session: answer.session ?? null, csrfToken: answer.csrfToken, error: null, reason: null });
}

/** What is told of a session that is over while somebody works. */
export const ENDED = 'Your session has ended. Sign in again to go on where you were.';

/** Forgets who was signed in; `wanted` is the page that asked for it, `reason` is told there. */
export function signedOut(wanted = null, reason = null) {
  session.set({ status: 'out', user: null, account: null, session: null, csrfToken: null, place: null, wanted, error: null, reason });
}

/** @param {'live'|'test'} mode */
export function setMode(mode) {
  sessionStorage.setItem(MODE_KEY, mode);
  session.set({ mode });
}

/**
 * Whether the role of the signed-in user is `needed` or above.
 * @param {'viewer'|'manager'|'admin'|'owner'} needed
 */
export function may(needed) {
  const role = session.get().user?.role;
  return ROLES.indexOf(role) >= ROLES.indexOf(needed) && ROLES.includes(role);
}
