/**
 * Parses JSON without losing a digit of an amount: a number that is no safe integer (a decimal, an exponent, more than
 * 15 digits) becomes a string with the server's text. `money.js` accepts both forms.
 */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const SAFE = /^-?\d{1,15}$/;

/**
 * @param {string} text a JSON document
 * @returns {unknown} its value, with long and fractional numbers as strings
 */
export function parseExact(text) {
  const quoted = text.replace(TOKEN, (token) => (token[0] === '"' || SAFE.test(token) ? token : `"${token}"`));
  return JSON.parse(quoted);
}
