// A person who uses the dashboard: actions on any page, in terms of its visible text.

import assert from 'node:assert/strict';
import { rest } from './look.mjs';
import { plan } from './stage.mjs';

/** Longest wait for something that another part of the system has to do first. */
const EVENTUALLY_MS = 60_000;
/** Pause between two looks. */
const AGAIN_MS = 100;

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** A field's label, which may say that the field is optional. */
const labelled = (label) => new RegExp(`^${escaped(label)}( optional)?$`);

/** Chooses by what an option says, or how it begins. */
async function choose(field, wanted) {
  const options = await field.getByRole('option').allInnerTexts();
  const found = options.find((text) => (wanted instanceof RegExp ? wanted.test(text) : text === wanted));
  await field.selectOption({ label: found ?? `none of ${options} is ${wanted}` });
}

/** Looks until `look` gives something that is true. */
export async function eventually(what, look) {
  const end = Date.now() + EVENTUALLY_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`this never came: ${what}`);
    await new Promise((again) => setTimeout(again, AGAIN_MS));
  }
}

/** A person with a window. */
export class Person {
  constructor(name, context, page, watch, journey) {
    Object.assign(this, { name, context, page, watch, journey });
  }

  /** See `Watch.expect`. */
  expect(status, path) {
    this.watch.expect(status, path);
  }

  /** See `Watch.allow`. */
  allow(status, path) {
    this.watch.allow(status, path);
  }

  /** Waits until the page has loaded what it shows. */
  rest() {
    return rest(this.page);
  }

  /** Looks at the page at phone width only. */
  glance(name) {
    return this.journey.glance(this.page, name);
  }

  /** Looks at the page in every way, with screenshots under `name`. */
  look(name) {
    return this.journey.look(this.page, name);
  }

  /** Types an address: `/agents`, as it stands behind the `#`. */
  async open(path) {
    await this.page.goto(`${plan.base}/#${path}`);
    await rest(this.page);
  }

  /** Signs in on the page that asks for it. */
  async signIn(user, password = user.password) {
    await this.fill({ Email: user.email, Password: password });
    await this.press('Sign in');
  }

  /** Opens the dashboard as `user`. */
  async enter(user, path = '/') {
    await this.open(path);
    await this.signIn(user);
    await this.page.getByRole('navigation', { name: 'Main' }).waitFor();
  }

  /** Clicks an entry of the navigation, wherever that leads. */
  toward(label) {
    return this.follow(label, this.page.getByRole('navigation', { name: 'Main' }));
  }

  /** Goes to a page by the navigation. */
  async menu(label) {
    await this.toward(label);
    await this.heading(label);
  }

  /** Waits for the page with this heading. */
  heading(name) {
    return this.page.getByRole('heading', { level: 1, name }).waitFor();
  }

  /** Presses the button with this name. */
  press(name, where = this.page) {
    return where.getByRole('button', { name, exact: typeof name === 'string' }).first().click();
  }

  /** Follows the link with this name. */
  follow(name, where = this.page) {
    return where.getByRole('link', { name, exact: typeof name === 'string' }).first().click();
  }

  /** Opens the tab with this name. */
  tab(name) {
    return this.page.getByRole('tab', { name, exact: true }).click();
  }

  /** Fills fields by their labels: a text, a choice, or yes and no. */
  async fill(fields, where = this.page) {
    for (const [label, value] of Object.entries(fields)) {
      // A label around its control has the control's own text in it, which only the accessible name leaves out.
      const around = where.getByRole('combobox', { name: label, exact: true });
      const field = where.getByLabel(labelled(label)).or(around).first();
      if (typeof value === 'boolean') await field.setChecked(value);
      else if ((await field.evaluate((one) => one.tagName)) === 'SELECT') await choose(field, value);
      else await field.fill(value);
    }
  }

  /** The open dialog, with this title if one is given. */
  dialog(name) {
    return this.page.getByRole('dialog', name ? { name } : {});
  }

  /** The part of a page under this heading. */
  section(name) {
    return this.page.getByRole('region', { name, exact: typeof name === 'string' }).first();
  }

  /** The row of a table in which this text stands. */
  row(text, where = this.page) {
    return where.getByRole('row').filter({ hasText: text }).first();
  }

  /** Waits until a text, or what a locator names, is to be seen. */
  sees(what, where = this.page) {
    const found = typeof what === 'string' || what instanceof RegExp ? where.getByText(what) : what;
    return found.filter({ visible: true }).first().waitFor();
  }

  /** Waits until it is not, or no more. */
  async misses(what, where = this.page) {
    const found = typeof what === 'string' || what instanceof RegExp ? where.getByText(what) : what;
    await found.filter({ visible: true }).first().waitFor({ state: 'hidden' });
  }

  /** That no control with this name is offered. */
  async isNotOffered(role, name) {
    const count = await this.page.getByRole(role, { name }).count();
    assert.equal(count, 0, `${this.name} is offered the ${role} ${name} at ${this.page.url()}`);
  }

  /** The file that a press makes the browser save: its name and its text. */
  async download(press) {
    const [download] = await Promise.all([this.page.waitForEvent('download'), press()]);
    const parts = [];
    for await (const part of await download.createReadStream()) parts.push(part);
    return { name: download.suggestedFilename(), text: Buffer.concat(parts).toString() };
  }

  /** Looks again, with a reload each time, until `look` gives something that is true. */
  again(what, look) {
    return eventually(what, async () => {
      const found = await look();
      if (!found) await this.page.reload();
      return found;
    });
  }
}
