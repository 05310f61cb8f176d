/**
 * The switch between light, dark and what the system says. `js/theme.js` keeps the choice.
 */
import { html, useEffect, useState } from '../html.js';

const THEMES = [['system', 'System'], ['light', 'Light'], ['dark', 'Dark']];
/** Not there if its file could not be fetched: then there is no choice, and nothing else is missing. */
const kept = globalThis.tollgateTheme;

/** The switch; one choice of three, so the arrow keys move it. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(kept?.get());
  useEffect(() => {
    const follow = () => setTheme(kept?.get());
    addEventListener('storage', follow);
    return () => removeEventListener('storage', follow);
  }, []);
  const choose = (next) => {
    kept.set(next);
    setTheme(next);
  };
  if (!kept) return null;
  return html`<fieldset class="theme">
    <legend class="sr-only">Theme</legend>
    <div class="segments">${THEMES.map(([value, label]) => html`<label key=${value} class="segment theme-choice" title=${`Theme: ${label}`}>
      <input type="radio" name="theme" value=${value} checked=${theme === value} onChange=${() => choose(value)} /><span>${label}</span>
    </label>`)}</div>
  </fieldset>`;
}
