// The snippets of the dashboard's Connect page, from the file that the page loads.

import { readFileSync } from 'node:fs';

const snippets = readFileSync(
  new URL('../../admin/dashboard/web/js/pages/connect/snippets.js', import.meta.url), 'utf8');

export const { CLIENTS, KEY_NAME } = await import(`data:text/javascript,${encodeURIComponent(snippets)}`);
