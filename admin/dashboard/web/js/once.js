/**
 * Idempotent requests: a double click or a retry after a lost answer carries out a change only once.
 */
import { useRef } from './html.js';
import { newIdempotencyKey, post } from './api.js';
import { session } from './session.js';
import { store } from './store.js';

const BEFORE = 'Your earlier request, with other values, arrived before this one. Check its result: sending again carries out this one too.';
const UNKNOWN = 'The server did not confirm this. It is safe to send again: it happens at most once.';
const UNKNOWN_AND_LEFT = 'The server did not confirm this, and its form is closed. Check its result first: another request carries it out again.';
const OTHER_USER = 'Another user has signed in in this browser: nothing was sent.';
const STILL_UNKNOWN = 'The outcome of your earlier request is still not known. It is safe to send again: it happens at most once.';

/** The number of requests with an idempotency key that have no answer yet. Dialogs stay open until it is 0. */
export const underWay = store({ count: 0 });
const countBy = (change) => underWay.set({ count: underWay.get().count + change });

/** Returns true if the failed request may have been carried out: only a 4xx answer rules that out. */
const isUnknown = ({ status }) => !(status >= 400 && status < 500) || status === 408;

/** Returns true if the request's key belongs to another request. A taken reference of a deposit has the same code. */
const isReused = ({ code, field }) => code === 'IDEMPOTENCY_KEY_REUSED' && field !== 'reference';

/** Returns true if the server says that this refusal is recorded under the request's key. */
const isRecorded = ({ body }) => body?.state === 'blocked' || body?.replayed === true;

/**
 * Returns a `post` that reuses one idempotency key until there is a definite answer. While the outcome is unknown the
 * key stays, even if the user changes the form: the server then reports that the first request was done, and changes
 * nothing. A refusal that the server does not record says nothing about an earlier request, so the key outlives it.
 * It sends nothing once another user than the one of the form is signed in. `leftMessage` of an error is for a form that is gone, and the key with it.
 * @returns {(path: string, body: object) => Promise<object>}
 */
export function useOnce() {
  const sent = useRef(unused());
  const userId = useRef(session.get().user?.id);
  return async (path, body) => {
    if (session.get().user?.id !== userId.current) throw new Error(OTHER_USER);
    countBy(1);
    try {
      const answer = await post(path, body, { idempotencyKey: sent.current.key });
      sent.current = unused();
      return answer;
    } catch (error) {
      sent.current = after(error, sent.current);
      throw error;
    } finally {
      countBy(-1);
    }
  };
}

const unused = () => ({ key: newIdempotencyKey(), unknown: false });

/**
 * Returns the key to use after a failed request, and adds to the error's message what the user needs to know about it.
 */
function after(error, { key, unknown }) {
  if (isUnknown(error)) {
    error.message = UNKNOWN;
    error.leftMessage = UNKNOWN_AND_LEFT;
    return { key, unknown: true };
  }
  if (!unknown || isRecorded(error)) return unused();
  if (isReused(error)) {
    error.message = BEFORE;
    return unused();
  }
  error.leftMessage = `${error.message} ${UNKNOWN_AND_LEFT}`;
  error.message += ` ${STILL_UNKNOWN}`;
  return { key, unknown };
}

/** Awaits a request without an idempotency key. If its outcome is unknown, the error says `message`. */
export async function withoutKey(request, message) {
  try {
    return await request;
  } catch (error) {
    if (isUnknown(error)) error.message = message;
    throw error;
  }
}

/** Adds to `text` that the answer is a replay of an earlier request. */
export const replayed = (answer, text) => (answer.replayed ? `${text} An earlier request had done it; nothing was repeated.` : text);
