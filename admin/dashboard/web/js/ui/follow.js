/**
 * Reloads a list: when the user requests it, and periodically while the user follows the list.
 */
import { html, useEffect, useState } from '../html.js';
import { Button } from './button.js';

/** Reload interval of a followed list. */
const EVERY_MS = 5000;

/** @returns {{turn: number, again: () => void, on: boolean, toggle: () => void}} `turn` is the list’s `refresh` */
export function useFollow() {
  const [turn, setTurn] = useState(0);
  const [on, setOn] = useState(false);
  const again = () => setTurn((count) => count + 1);
  useEffect(() => {
    if (!on) return undefined;
    const timer = setInterval(() => document.visibilityState === 'visible' && again(), EVERY_MS);
    return () => clearInterval(timer);
  }, [on]);
  return { turn, again, on, toggle: () => setOn(!on) };
}

/** The buttons. @param {{of: ReturnType<typeof useFollow>, what: string}} props `what` names the list */
export function Follow({ of, what }) {
  return html`<${Button} small aria-pressed=${of.on ? 'true' : 'false'} aria-label=${`Follow ${what}`} onClick=${of.toggle}>
      <span class=${of.on ? 'follow-dot follow-on' : 'follow-dot'} aria-hidden="true"></span>Follow<//>
    <${Button} small onClick=${of.again}>Refresh<//>`;
}
