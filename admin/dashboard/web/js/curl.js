/**
 * Calls of the management API as curl commands, with one option a line.
 */

/**
 * @param {string} path after `/api/v1`
 * @param {{key?: string, headers?: string[], body?: string, options?: string}} [more] `key` is an API key or the
 *   variable that holds one; `body` is JSON, quoted for a single-quoted shell string; `options` come first
 */
export function curl(path, { key = '$TOLLGATE_API_KEY', headers = [], body, options } = {}) {
  const given = [`Authorization: Bearer ${key}`, ...headers, ...(body ? ['Content-Type: application/json'] : [])];
  const lines = [`curl ${options ? `${options} ` : ''}${location.origin}/api/v1${path}`, ...given.map((header) => `-H "${header}"`), ...(body ? [`-d '${body}'`] : [])];
  return lines.join(' \\\n  ');
}
