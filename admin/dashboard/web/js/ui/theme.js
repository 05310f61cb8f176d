/**
 * The switch between light, dark and what the system says. `js/theme.js` keeps the choice.
 */
import { html, useEffect, useState } from '../html.js';

const THEMES = [['system', 'System'], ['light', 'Light'], ['dark', 'Dark']];

/** The switch; one choice of three, so the arrow keys move it. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(tollgateTheme.get());
  useEffect(() => {
    const follow = () => setTheme(tollgateTheme.get());
    addEventListener('storage', follow);
    return () => removeEventListener('storage', follow);
  }, []);
  const choose = (next) => {
    tollgateTheme.set(next);
    setTheme(next);
  };
  return html`<fieldset class="theme">
    <legend class="sr-only">Theme</legend>
    <div class="segments">${THEMES.map(([value, label]) => html`<label key=${value} class="segment theme-choice" title=${`Theme: ${label}`}>
      <input type="radio" name="theme" value=${value} checked=${theme === value} onChange=${() => choose(value)} /><span>${label}</span>
    </label>`)}</div>
  </fieldset>`;
}
