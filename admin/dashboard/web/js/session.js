/**
 * The session: the signed-in user and the role's permissions. The server enforces roles; the dashboard only hides
 * actions that the role may not use.
 */
import { store, useStore } from './store.js';

const ROLES = ['viewer', 'manager', 'admin', 'owner'];

/** `status`: loading until /me has answered, then in or out; unknown if that request failed. */
export const session = store({
  status: 'loading', user: null, account: null, session: null, csrfToken: null,
  /** Answer of /installation; null until it is loaded. */
  place: null,
  /** Address of the page to open after signing in. */
  wanted: null,
  /** Error of the request to /me, for the status unknown. */
  error: null,
  /** Why the user has to sign in again; the sign-in page shows it. */
  reason: null,
});

/** Subscribes the component to the session. */
export const useSession = () => useStore(session);

/** Sends the other tabs of this browser, which share the cookie, a message when somebody signs in or out. */
const tabs = new BroadcastChannel('tollgate.session');

/** Calls `handle` when somebody has signed in or out in another tab. */
export const onOtherTab = (handle) => tabs.addEventListener('message', handle);

/** Takes over the session from the answer of login, me, accept or password reset. */
export function signedIn(answer) {
  const { user, account } = answer;
  session.set({ status: 'in', user, account, session: answer.session ?? null, csrfToken: answer.csrfToken, error: null, reason: null });
}

/** Takes over a session that began in this tab. */
export function startSession(answer) {
  signedIn(answer);
  tabs.postMessage('in');
}

/** Message for a user whose session ended while they worked. */
export const ENDED = 'Your session has ended. Sign in again to go on where you were.';

/** Clears the session. After the next sign-in the page `wanted` opens; the sign-in page shows `reason`. */
export function signedOut(wanted = null, reason = null) {
  session.set({ status: 'out', user: null, account: null, session: null, csrfToken: null, place: null, wanted, error: null, reason });
}

/** Clears the session that the user ended in this tab. */
export function endSession() {
  signedOut();
  tabs.postMessage('out');
}

/**
 * Whether the role of the signed-in user is `needed` or above.
 * @param {'viewer'|'manager'|'admin'|'owner'} needed
 */
export function may(needed) {
  const role = session.get().user?.role;
  return ROLES.indexOf(role) >= ROLES.indexOf(needed) && ROLES.includes(role);
}
