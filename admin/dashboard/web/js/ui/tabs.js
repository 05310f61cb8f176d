/**
 * Tabs with the usual keys: arrows move, Home and End go to the ends. The address holds the open tab.
 */
import { html, useLayoutEffect, useRef } from '../html.js';
import { setQuery, usePlace } from '../router.js';

/**
 * @param {{label: string, tabs: Array<{id: string, label: string, show: () => unknown}|false|null>, name?: string}}
 *   props `name` is the parameter of the address
 */
export function Tabs({ label, tabs, name = 'tab' }) {
  const list = useRef(null);
  const { query } = usePlace();
  const shown = tabs.filter(Boolean);
  const open = shown.find((tab) => tab.id === query[name]) ?? shown[0];
  const select = (tab) => setQuery({ [name]: tab.id === shown[0].id ? null : tab.id });
  // On a phone the open tab may be outside the visible part of the tab list.
  useLayoutEffect(() => {
    const [bar, tab] = [list.current, list.current.children[shown.indexOf(open)]];
    if (tab.offsetLeft + tab.offsetWidth > bar.scrollLeft + bar.clientWidth || tab.offsetLeft < bar.scrollLeft) bar.scrollLeft = tab.offsetLeft - bar.clientWidth / 2;
  }, [open.id]);
  const move = (event) => {
    const at = shown.indexOf(open);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const index = (next + shown.length) % shown.length;
    select(shown[index]);
    list.current.children[index].focus();
  };
  return html`<div>
    <div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${move}>
      ${shown.map((tab) => html`<button key=${tab.id} type="button" role="tab" class="tab" id=${`tab-${tab.id}`}
        aria-selected=${tab === open ? 'true' : 'false'} aria-controls=${tab === open ? `panel-${tab.id}` : null} tabindex=${tab === open ? 0 : -1}
        onClick=${() => select(tab)}>${tab.label}</button>`)}
    </div>
    <div role="tabpanel" class="tab-panel" key=${open.id} id=${`panel-${open.id}`} aria-labelledby=${`tab-${open.id}`} tabindex="0">${open.show()}</div>
  </div>`;
}
