/**
 * Forms. The server validates the input. Its error message begins with the name of the invalid field; the form shows it
 * beside that field and focuses the field. Any other message is shown above the buttons.
 */
import { createContext, html, useContext, useEffect, useRef, useState } from '../html.js';
import { Exact } from '../api.js';
import { typedAmount } from '../money.js';
import { underWay } from '../once.js';
import { href } from '../router.js';
import { session } from '../session.js';
import { useStore } from '../store.js';
import { Button } from './button.js';
import { say } from './live.js';

const Context = createContext({ id: 'form', errors: {} });
/** Error codes of requests that a larger plan would allow. */
const PLAN_CODES = ['PLAN_VIRTUAL_KEY_LIMIT', 'TIER_LIMIT', 'PLAN_FEATURE'];
let made = 0;

/** A validation error of one field that the browser found. */
export class FieldError extends Error {
  /** @param {string} field @param {string} message */
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

/**
 * @param {{onSubmit: (values: object) => Promise<unknown>, action: string, kind?: string, onCancel?: Function,
 *   names?: object, label?: string, inline?: boolean}} props `action` is the button's label; `names` maps the server's
 *   field names to those of this form where they differ; `label` names the form for screen readers
 */
export function Form({ onSubmit, action, kind = 'primary', onCancel, names = {}, label, inline = false, children }) {
  const element = useRef(null);
  const [id] = useState(() => `form-${(made += 1)}`);
  const [state, setState] = useState({ errors: {}, general: null, busy: false });
  const sending = useStore(underWay).count > 0;
  // The browser's autofocus works only once for each document, and logs a warning after that.
  useEffect(() => {
    element.current?.querySelector('[data-first]')?.focus();
  }, []);
  useEffect(() => {
    element.current?.querySelector('[aria-invalid="true"]')?.focus();
  }, [state.errors]);
  // In a dialog that scrolls, the message can be outside the view or below the buttons, which stay in view.
  useEffect(() => {
    if (state.general) element.current?.querySelector('[role="alert"]')?.scrollIntoView({ block: 'center' });
  }, [state.general]);
  const submit = async (event) => {
    event.preventDefault();
    if (state.busy) return;
    setState((old) => ({ ...old, errors: {}, busy: true, general: null }));
    const userId = session.get().user?.id;
    let outcome = { errors: {}, general: null, upgrade: false, busy: false };
    try {
      await onSubmit(read(element.current));
    } catch (error) {
      outcome = { ...outcome, ...complaint(error, names, element.current) };
      // The person has left the page. Somebody else who has signed in since then must not see the message.
      if (!element.current && session.get().user?.id === userId) say(error.leftMessage ?? error.message, 'error');
    }
    if (element.current) setState(outcome);
  };
  return html`<${Context.Provider} value=${{ id, errors: state.errors }}>
    <form ref=${element} class=${inline ? 'form form-inline' : 'form'} aria-label=${label} onSubmit=${submit} noValidate>
      ${children}
      ${state.general && html`<div class="alert alert-error" role="alert"><p dir="auto">${state.general}</p>
        ${state.upgrade && html`<p><a href=${href('/plan')}>See the plans</a></p>`}</div>`}
      <div class="actions">
        ${onCancel && html`<${Button} off=${sending} onClick=${onCancel}>Cancel<//>`}
        <${Button} type="submit" kind=${kind} busy=${state.busy}>${action}<//>
      </div>
    </form>
  <//>`;
}

/** Places an error message beside the field that it names, with the field's label, or above the buttons. */
function complaint(error, names, form) {
  const field = error.field ? (names[error.field] ?? error.field) : null;
  const found = field && form?.elements.namedItem(field);
  if (!found) return { general: error.message, upgrade: PLAN_CODES.includes(error.code) };
  const { label } = (found.dataset ? found : found[0]).dataset;
  const rest = error.message.startsWith(error.field) ? error.message.slice(error.field.length) : null;
  return { errors: { [field]: rest === null || !label ? error.message : sentence(label, rest) } };
}

/** Replaces the field's name in `name must be …` by its label, and drops it from `name: the name must be …`. */
function sentence(label, rest) {
  const own = /^:\s*(.)/u.exec(rest);
  return own ? own[1].toUpperCase() + rest.slice(own[0].length) : `${label}${rest}`;
}

/**
 * The values of a form by name: text, true or false of a lone checkbox, a list of a group, `Exact` or null of an
 * amount.
 */
function read(form) {
  const values = {};
  for (const control of form.elements) {
    const { name, type, value, checked } = control;
    if (!name) continue;
    if (control.dataset.group !== undefined) {
      values[name] = [...(values[name] ?? []), ...(checked ? [value] : [])];
    } else if (type === 'checkbox') values[name] = checked;
    else if (type === 'radio') values[name] = checked ? value : (values[name] ?? null);
    else if (control.dataset.money !== undefined) values[name] = amount(name, value, control.required);
    else values[name] = value;
    if (control.required && (values[name] === '' || values[name] === false)) {
      throw new FieldError(name, `${control.dataset.label} is needed.`);
    }
  }
  return values;
}

function amount(name, value, required) {
  if (value.trim() === '' && !required) return null;
  const exact = typedAmount(value);
  if (exact === null) throw new FieldError(name, 'Give an amount in USD with at most nine decimals, like 10 or 0.0005.');
  return new Exact(exact);
}

/** A control with its label, hint and error; `of` gets the attributes that bind them. */
export function Labelled({ name, label, hint, required, optional, autofocus, of }) {
  const { id, errors } = useContext(Context);
  const own = `${id}-${name}`;
  const error = errors[name];
  const described = [hint && `${own}-hint`, error && `${own}-error`].filter(Boolean).join(' ') || null;
  const bind = {
    id: own, name, required, 'data-label': label, 'data-first': autofocus ? '' : null,
    'aria-describedby': described, 'aria-invalid': error ? 'true' : null,
  };
  return html`<div class=${error ? 'field field-bad' : 'field'}>
    <label for=${own}>${label}${optional && html` <span class="muted">optional</span>`}</label>
    ${of(bind)}
    ${hint && html`<p class="hint" id=${`${own}-hint`}>${hint}</p>`}
    ${error && html`<p class="field-error" id=${`${own}-error`} dir="auto">${error}</p>`}
  </div>`;
}

/** One line of text. `type` may be email, password, number, datetime-local, url … */
export function TextField({ type = 'text', value, name, label, hint, required, optional, autofocus, ...rest }) {
  const of = (bind) => html`<input class="input" dir=${type === 'text' ? 'auto' : null} type=${type} defaultValue=${value ?? ''} ...${bind} ...${rest} />`;
  return html`<${Labelled} ...${{ name, label, hint, required, optional, autofocus, of }} />`;
}

/** Hidden user name of a form that only has a password, so that password managers find the right account. */
export function UserName({ value = '' }) {
  return html`<input hidden type="text" autocomplete="username" value=${value} readonly aria-hidden="true" tabindex="-1" />`;
}

/** Several lines of text. */
export function AreaField({ value, rows = 3, name, label, hint, required, optional, autofocus, ...rest }) {
  const of = (bind) => html`<textarea class="input" dir="auto" rows=${rows} defaultValue=${value ?? ''} ...${bind} ...${rest}></textarea>`;
  return html`<${Labelled} ...${{ name, label, hint, required, optional, autofocus, of }} />`;
}

/** An amount in USD; its value is an `Exact`, or null when it is empty and not required. */
export function MoneyField({ value, name, label, hint, required, optional, autofocus, ...rest }) {
  const of = (bind) => html`<span class="money-input"><span aria-hidden="true">$</span>
    <input class="input num" inputmode="decimal" autocomplete="off" data-money="" defaultValue=${value ?? ''} ...${bind} ...${rest} /></span>`;
  return html`<${Labelled} ...${{ name, label, hint, required, optional, autofocus, of }} />`;
}

/** A choice. @param {{options: Array<[string, string]>}} props pairs of value and label */
export function SelectField({ value, options, name, label, hint, required, optional, autofocus, ...rest }) {
  const of = (bind) => html`<select class="input" ...${bind} ...${rest}>
    ${options.map(([key, text]) => html`<option key=${key} value=${key} selected=${key === value}>${text}</option>`)}
  </select>`;
  return html`<${Labelled} ...${{ name, label, hint, required, optional, autofocus, of }} />`;
}

/** A checkbox. Its value is true or false. */
export function CheckField({ value = false, name, label, hint }) {
  const { id } = useContext(Context);
  const own = `${id}-${name}`;
  return html`<div class="field field-check">
    <input type="checkbox" id=${own} name=${name} data-label=${label} defaultChecked=${value} aria-describedby=${hint ? `${own}-hint` : null} />
    <label for=${own}>${label}</label>
    ${hint && html`<p class="hint" id=${`${own}-hint`}>${hint}</p>`}
  </div>`;
}

/** A group of checkboxes. Its value is a list. @param {{options: Array<[string, string]>, value: string[]}} props */
export function ChoicesField({ name, label, hint, options, value = [] }) {
  const { id, errors } = useContext(Context);
  const own = `${id}-${name}`;
  const error = errors[name];
  const described = [hint && `${own}-hint`, error && `${own}-error`].filter(Boolean).join(' ') || null;
  return html`<fieldset class=${error ? 'field field-bad' : 'field'} aria-describedby=${described}>
    <legend>${label}</legend>
    <div class="choices">
      ${options.map(([key, text]) => html`<label key=${key} class="choice">
        <input type="checkbox" name=${name} value=${key} data-group="" data-label=${label} defaultChecked=${value.includes(key)} aria-invalid=${error ? 'true' : null} /> ${text}
      </label>`)}
    </div>
    ${hint && html`<p class="hint" id=${`${own}-hint`}>${hint}</p>`}
    ${error && html`<p class="field-error" id=${`${own}-error`} dir="auto">${error}</p>`}
  </fieldset>`;
}
