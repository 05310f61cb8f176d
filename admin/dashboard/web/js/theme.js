/*
 * The theme chosen in this browser: light, dark, or the system's. This is a classic script in the head, so that the
 * page is never drawn in a different theme first.
 */
(() => {
  const KEY = 'tollgate.theme';
  const THEMES = ['light', 'dark'];
  const root = document.documentElement;
  const show = (theme) => {
    if (THEMES.includes(theme)) root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  const remembered = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // Storage is blocked by the browser: the choice lasts until the page is closed.
    }
  };
  show(remembered());
  // A choice in one tab applies to all tabs.
  addEventListener('storage', ({ key, newValue }) => (key === KEY || key === null) && show(newValue));
  globalThis.tollgateTheme = {
    /** @returns {'light'|'dark'|'system'} */
    get: () => root.dataset.theme ?? 'system',
    /** @param {'light'|'dark'|'system'} theme */
    set(theme) {
      show(theme);
      try {
        if (THEMES.includes(theme)) localStorage.setItem(KEY, theme);
        else localStorage.removeItem(KEY);
      } catch {
        // Storage is blocked: see `remembered`.
      }
    },
  };
})();
