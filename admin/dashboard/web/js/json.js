/**
 * Works on JSON as text: extracts a value of a document and adds line breaks. Nothing is parsed and serialised again,
 * so numbers keep their digits and the text shown is the text stored.
 */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;
const CLOSE = { '{': '}', '[': ']' };
/** Invisible characters and those that change the direction of text: shown as JSON escapes. */
const INVISIBLE = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g;

/**
 * The text of one value of a document, or null when there is none.
 * @param {string} text valid JSON
 * @param {Array<string|number>} path names of members and numbers of elements
 */
export function part(text, path) {
  const tokens = [...text.matchAll(TOKENS)];
  let at = 0;
  for (const step of path) {
    at = child(tokens, at, step);
    if (at === null) return null;
  }
  const last = tokens[behind(tokens, at) - 1];
  return text.slice(tokens[at].index, last.index + last[0].length);
}

function child(tokens, at, step) {
  const close = CLOSE[tokens[at][0]];
  const named = close === '}';
  for (let next = at + 1, index = 0; close && tokens[next][0] !== close; index += 1) {
    const value = named ? next + 2 : next;
    if ((named ? JSON.parse(tokens[next][0]) : index) === step) return value;
    next = behind(tokens, value);
    if (tokens[next][0] === ',') next += 1;
  }
  return null;
}

/** The token behind the value that begins at `at`. */
function behind(tokens, at) {
  let depth = 0;
  for (let next = at; next < tokens.length; next += 1) {
    const [token] = tokens[next];
    if (token in CLOSE) depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    if (depth === 0) return next + 1;
  }
  return tokens.length;
}

/**
 * The same document with line breaks and two spaces for each level.
 * @param {string} text valid JSON
 */
export function pretty(text) {
  const tokens = text.match(TOKENS) ?? [];
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  const written = tokens.map((token, index) => {
    if (token in CLOSE) {
      depth += 1;
      return token + (tokens[index + 1] === CLOSE[token] ? '' : line());
    }
    if (token === '}' || token === ']') {
      depth -= 1;
      return (tokens[index - 1] in CLOSE ? '' : line()) + token;
    }
    if (token === ',') return `,${line()}`;
    return token === ':' ? ': ' : token;
  });
  return written.join('').replace(INVISIBLE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
