/**
 * Downloads: fetched with the session and the mode, saved under the server's file name.
 */
import { fetchRaw } from './api.js';

/** Time for the browser to start saving a file before its object URL is revoked. */
const TAKEN_MS = 60_000;

/** Saves a text or the chunks of a file. @param {BlobPart[]} parts */
export function save(parts, name, type) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), TAKEN_MS);
}

/** The server's file name, reduced to letters, digits and `._-`. */
export function fileName(response, otherwise) {
  const given = /filename="([^"]+)"/.exec(response.headers.get('content-disposition') ?? '')?.[1];
  return (given ?? otherwise).replace(/[^A-Za-z0-9._-]/g, '_');
}

/**
 * Fetches a file and saves it. Throws if the answer is cut off; then nothing is saved.
 * @param {string} path
 * @param {{query?: object, name: string, signal?: AbortSignal, begin?: (headers: Headers) => void, onChunk?: (chunk:
 *   Uint8Array) => void}} options `begin` gets the headers and may throw; `name` is used if the server sends none
 */
export async function download(path, { query, name, signal, begin, onChunk }) {
  const response = await fetchRaw('GET', path, { query, signal });
  const parts = [];
  const reader = response.body.getReader();
  try {
    begin?.(response.headers);
    for (;;) {
      const { done, value } = await next(reader, signal);
      if (done) break;
      parts.push(value);
      onChunk?.(value);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
  save(parts, fileName(response, name), response.headers.get('content-type') ?? 'application/octet-stream');
}

async function next(reader, signal) {
  try {
    return await reader.read();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error('the connection ended before the file was whole.');
  }
}
