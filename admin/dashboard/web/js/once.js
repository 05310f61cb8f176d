/**
 * Changes that must happen once however often they are sent: a double click, a retry after a lost answer.
 */
import { useRef } from './html.js';
import { newIdempotencyKey, post } from './api.js';

const BEFORE = 'Your earlier request, with other values, was carried out. Check its result: sending again carries out this one too.';
const UNKNOWN = 'The server did not answer. It is safe to send again: it happens at most once.';

/**
 * A `post` with one idempotency key until there is a definite answer. While the outcome is not known the key stays, also when
 * the form is changed meanwhile: the server then says that the first request was done, and does nothing.
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

/** What to tell of an answer that was given before. */
export const replayed = (answer, text) => (answer.replayed ? `${text} It was done before, and not once more.` : text);
