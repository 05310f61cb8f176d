// Looks at a page as it stands: in light, in dark and at phone width, judged by axe-core, with screenshots if wanted.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { need, plan } from './stage.mjs';

export const DESK = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };
/** Between the two, where tables have the least room. */
const TABLET = { width: 1024, height: 768 };

const AXE = readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8');
/** Longest wait for a page to come to rest. */
const REST_MS = 60_000;

/** Elements that a page shows while it loads. */
const LOADING = '[aria-busy="true"]:not(button), [role="status"][aria-label^="Loading"], .boot';

/** Waits until nothing is loading and what was to be drawn is drawn. */
export async function rest(page) {
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await page.evaluate(drawn);
  await page.waitForFunction((loading) => document.querySelector(loading) === null, LOADING, { timeout: REST_MS });
  await page.evaluate(drawn);
}

/** A screenshot of the whole page; its path. `caret: initial` keeps Playwright from adding a style that the page's
 * policy would refuse. */
export async function picture(page, name) {
  const path = join(plan.screenshots, `${name}.png`);
  await page.screenshot({ path, fullPage: true, caret: 'initial', timeout: REST_MS });
  return path;
}

/** The rules of axe-core whose verdict the colours may change. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/** Violations that axe-core finds on the page, a line for each element. `rules` are those to apply, all if there are
    none. */
export async function violations(page, rules = []) {
  // By the debugger's evaluation, which the page's Content-Security-Policy leaves alone.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
  const found = await page.evaluate(async (only) => {
    const runOnly = only.length > 0 ? { runOnly: { type: 'rule', values: only } } : {};
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'], ...runOnly });
    return violations.flatMap(({ id, help, nodes }) =>
      nodes.map((node) => `${id} (${help}): ${node.html.slice(0, 200)} ${node.any[0]?.message ?? ''}`));
  }, rules);
  return found;
}

/** Elements that do not fit: they make the page itself scroll sideways, or stick out of their cell. */
async function overflow(page) {
  return page.evaluate(() => {
    const root = document.documentElement;
    const shown = (one) => one.outerHTML.slice(0, 160);
    const faults = [];
    if (root.scrollWidth > root.clientWidth) {
      const wide = [...document.querySelectorAll('body *')].filter((one) => {
        const box = one.getBoundingClientRect();
        return box.width > 0 && box.right > root.clientWidth + 0.5;
      });
      faults.push(`the page scrolls sideways, ${root.scrollWidth} > ${root.clientWidth} px: ${wide.slice(0, 5).map(shown).join(' … ')}`);
    }
    // An element that a parent cuts or scrolls does not stick out, nor does one for screen readers only.
    const kept = (one, cell) => {
      for (let up = one.parentElement; up !== cell; up = up.parentElement) if (getComputedStyle(up).overflowX !== 'visible') return true;
      return false;
    };
    const out = [...document.querySelectorAll('th *, td *')].flatMap((one) => {
      const [cell, box] = [one.closest('th, td'), one.getBoundingClientRect()];
      const frame = cell.getBoundingClientRect();
      const by = Math.max(box.right - frame.right, frame.left - box.left);
      return box.width > 1 && by > 0.5 && !kept(one, cell) ? [`${shown(one)} sticks ${Math.round(by)} px out of its cell`] : [];
    });
    return [...faults, ...out.slice(0, 5)];
  });
}

/** Looks at the page at phone width only, without a judgement of axe-core; what is wrong with it. */
export async function glance(page, name) {
  await page.setViewportSize(PHONE);
  await rest(page);
  const faults = await overflow(page);
  if (plan.picturesOfAll) await picture(page, `${name}.phone`);
  await page.setViewportSize(DESK);
  return faults.map((text) => `${name}, phone: ${text}`);
}

/** Looks at the page in every way; what is wrong with it. */
export async function look(page, name) {
  const faults = [];
  const note = (way, found) => faults.push(...found.map((text) => `${name}, ${way}: ${text}`));
  await page.setViewportSize(TABLET);
  await rest(page);
  note('tablet', await overflow(page));
  for (const [way, colorScheme, size, rules] of [
    ['dark', 'dark', DESK, COLOUR_RULES],
    ['phone', 'light', PHONE, []],
    ['light', 'light', DESK, []],
  ]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(size);
    await rest(page);
    note(way, await overflow(page));
    note(way, await violations(page, rules));
    if (plan.picturesOfAll) await picture(page, `${name}.${way}`);
  }
  return faults;
}
