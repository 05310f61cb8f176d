/**
 * The row of filters above a list. The address holds their values, so a filtered list can be linked to and reloaded.
 */
import { html, useEffect, useRef, useState } from '../html.js';
import { setQuery, usePlace } from '../router.js';

/** Pause after the last key before a search runs. */
const TYPING_MS = 300;

/** Runs an action once the user has stopped typing. @returns {{later: (act: () => void) => void, stop: () => void}} */
export function useTyping() {
  const timer = useRef(0);
  const stop = () => clearTimeout(timer.current);
  useEffect(() => stop, []);
  const later = (act) => {
    stop();
    timer.current = setTimeout(act, TYPING_MS);
  };
  return { later, stop };
}

export function Filters({ label, children }) {
  return html`<div class="filters" role="search" aria-label=${label}>${children}</div>`;
}

/** A search box bound to a parameter of the address; `offers` are texts to choose from. */
export function SearchFilter({ name, label, placeholder, offers = [] }) {
  const { query } = usePlace();
  const [text, setText] = useState(query[name] ?? '');
  const { later, stop } = useTyping();
  // A change of the address by others ("Show all") replaces the text. This box's own change does not: the user may have
  // typed more meanwhile.
  const wrote = useRef(query[name] ?? '');
  useEffect(() => {
    const given = query[name] ?? '';
    if (given === wrote.current) return;
    wrote.current = given;
    stop();
    setText(given);
  }, [query[name]]);
  const type = (event) => {
    const { value } = event.target;
    setText(value);
    later(() => {
      wrote.current = value.trim();
      setQuery({ [name]: wrote.current || null });
    });
  };
  const list = offers.length > 0 ? `offers-${name}` : null;
  return html`<label class="filter"><span class="filter-label">${label}</span>
      <input class="input" type="search" dir="auto" value=${text} placeholder=${placeholder} list=${list} onInput=${type} />
    </label>
    ${list && html`<datalist id=${list}>${offers.map((offer) => html`<option key=${offer} value=${offer}></option>`)}</datalist>`}`;
}

/**
 * A choice bound to a parameter of the address.
 * @param {{options: Array<[string, string]>}} props the first is "all" with ''
 */
export function SelectFilter({ name, label, options }) {
  const { query } = usePlace();
  return html`<label class="filter"><span class="filter-label">${label}</span>
    <select class="input" onChange=${(event) => setQuery({ [name]: event.target.value || null })}>
      ${options.map(([value, text]) => html`<option key=${value} value=${value} selected=${value === (query[name] ?? '')}>${text}</option>`)}
    </select>
  </label>`;
}

/** A day bound to a parameter of the address, in UTC. */
export function DayFilter({ name, label }) {
  const { query } = usePlace();
  return html`<label class="filter"><span class="filter-label">${label} <span class="muted">UTC</span></span>
    <input class="input" type="date" value=${query[name] ?? ''} onChange=${(event) => setQuery({ [name]: event.target.value || null })} />
  </label>`;
}

/** A moment bound to a parameter of the address, in UTC. */
export function TimeFilter({ name, label }) {
  const { query } = usePlace();
  const change = (event) => setQuery({ [name]: event.target.value ? `${event.target.value.slice(0, 16)}:00Z` : null });
  return html`<label class="filter"><span class="filter-label">${label} <span class="muted">UTC</span></span>
    <input class="input" type="datetime-local" value=${(query[name] ?? '').slice(0, 16)} onChange=${change} />
  </label>`;
}
