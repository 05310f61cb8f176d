/**
 * Reads a stream of JSON lines as they arrive.
 */
import { parseExact } from '../../exact.js';

/** Maximum length of a line. The server writes no longer ones. */
const LINE_MAX = 65_536;

/**
 * @param {Response} response
 * @returns {AsyncGenerator<object>}
 */
export async function* jsonLines(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const lines = rest.split('\n');
      rest = done ? '' : lines.pop();
      for (const line of lines) if (line.trim() !== '') yield parseExact(line);
      if (done) return;
      if (rest.length > LINE_MAX) throw new Error('The answer is not what was expected.');
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
