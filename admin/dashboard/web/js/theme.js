/*
 * The theme that was chosen in this browser: light, dark, or none, and then the system's. A classic script in the head, so
 * that the page is never drawn in another one first.
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
      return null; // A browser that lets pages keep nothing: the choice holds for this page.
    }
  };
  show(remembered());
  // What is chosen in one tab holds in all.
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
        // As above.
      }
    },
  };
})();
