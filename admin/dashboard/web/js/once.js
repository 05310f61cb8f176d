/**
 * Idempotent requests: a double click or a retry after a lost answer carries out a change only once.
 */
import { useRef } from './html.js';
import { newIdempotencyKey, post } from './api.js';

const BEFORE = 'Your earlier request, with other values, was carried out. Check its result: sending again carries out this one too.';
const UNKNOWN = 'The server did not answer. It is safe to send again: it happens at most once.';

/**
 * Returns a `post` that reuses one idempotency key until there is a definite answer. While the outcome is unknown the
 * key stays, even if the user changes the form: the server then reports that the first request was done, and changes
 * nothing.
 * @returns {(path: string, body: object) => Promise<object>}
 */
export function useOnce() {
  const key = useRef(newIdempotencyKey());
  return async (path, body) => {
    try {
      const answer = await post(path, body, { idempotencyKey: key.current });
      key.current = newIdempotencyKey();
      return answer;
    } catch (error) {
      const definite = error.status >= 400 && error.status < 500;
      if (definite) key.current = newIdempotencyKey();
      else error.message = UNKNOWN;
      if (error.code === 'IDEMPOTENCY_KEY_REUSED') error.message = BEFORE;
      throw error;
    }
  };
}

/** Adds to `text` that the answer is a replay of an earlier request. */
export const replayed = (answer, text) => (answer.replayed ? `${text} An earlier request had done it; nothing was repeated.` : text);
