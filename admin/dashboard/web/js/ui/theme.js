/**
 * The switch between the light theme, the dark theme and the system's setting. `js/theme.js` stores the choice.
 */
import { html, useEffect, useState } from '../html.js';

const THEMES = [['system', 'System'], ['light', 'Light'], ['dark', 'Dark']];
/** Undefined if the browser could not fetch `theme.js`. Then the switch is left out; everything else works. */
const kept = globalThis.tollgateTheme;

/** The switch is a group of three radio buttons, so the arrow keys move it. */
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
