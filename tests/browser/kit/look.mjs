// Looks at a page as it stands: in light, in dark and at phone width, with a screenshot each, judged by axe-core.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { need, plan } from './stage.mjs';

export const DESK = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

const AXE = readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8');
/** Longest wait for a page to come to rest. */
const REST_MS = 20_000;

/** What a page shows while it loads. */
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

/** What axe-core has against the page, a line for each element. */
export async function violations(page) {
  // By the debugger's evaluation, which the page's Content-Security-Policy leaves alone.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return violations.flatMap(({ id, help, nodes }) =>
      nodes.map((node) => `${id} (${help}): ${node.html.slice(0, 200)} ${node.any[0]?.message ?? ''}`));
  });
  return found;
}

/** Elements that make the page itself scroll sideways. */
async function overflow(page) {
  return page.evaluate(() => {
    const root = document.documentElement;
    if (root.scrollWidth <= root.clientWidth) return [];
    const wide = [...document.querySelectorAll('body *')].filter((one) => {
      const box = one.getBoundingClientRect();
      return box.width > 0 && box.right > root.clientWidth + 0.5;
    });
    const shown = wide.slice(0, 5).map((one) => one.outerHTML.slice(0, 160));
    return [`the page scrolls sideways, ${root.scrollWidth} > ${root.clientWidth} px: ${shown.join(' … ')}`];
  });
}

/** Looks at the page at phone width only, without a judgement of axe-core; what is wrong with it. */
export async function glance(page, name) {
  await page.setViewportSize(PHONE);
  await rest(page);
  const faults = await overflow(page);
  await picture(page, `${name}.phone`);
  await page.setViewportSize(DESK);
  return faults.map((text) => `${name}, phone: ${text}`);
}

/** Looks at the page in every way; what is wrong with it. */
export async function look(page, name) {
  const faults = [];
  const note = (way, found) => faults.push(...found.map((text) => `${name}, ${way}: ${text}`));
  for (const [way, colorScheme, size] of [
    ['dark', 'dark', DESK],
    ['phone', 'light', PHONE],
    ['light', 'light', DESK],
  ]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(size);
    await rest(page);
    note(way, await overflow(page));
    note(way, await violations(page));
    await picture(page, `${name}.${way}`);
  }
  return faults;
}
