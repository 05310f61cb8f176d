// Shared by all journeys: a browser, persons with windows of their own, and the checks at the end of each story: an
// empty console, no request to another host, no failed request but the expected ones, pages that axe-core accepts.

import { need, plan } from './stage.mjs';
import { DESK, glance, look, picture, rest } from './look.mjs';
import { Watch } from './watch.mjs';
import { Person } from './person.mjs';

const { chromium } = need('playwright-core');

/** Longest wait for anything on a page: a busy machine is no fault of the page. */
const WAIT_MS = 60_000;
/** Maximum characters of a page's text in the report of a failed journey. */
const TEXT_MAX = 4_000;
const OPTIONS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** One run of a story. */
class Journey {
  constructor(browser) {
    this.browser = browser;
    this.persons = [];
    this.faults = [];
    this.at = 'the beginning';
  }

  /** A part of the story, named in the report when it fails. A journey may have any number of them: each has a time
   * of its own. */
  async step(name, act) {
    this.at = name;
    const began = Date.now();
    const result = await within(plan.stepMs, act());
    console.log(`  ${name} (${Date.now() - began} ms)`);
    return result;
  }

  /** Somebody with a browser profile of their own: no cookie and no storage is shared with the others. */
  async person(name, { base = plan.base, ...options } = {}) {
    const context = await this.browser.newContext({ viewport: DESK, acceptDownloads: true, ...options });
    context.setDefaultTimeout(WAIT_MS);
    const watch = new Watch(base);
    watch.attach(context);
    const person = new Person(name, context, await context.newPage(), watch, this);
    this.persons.push(person);
    return person;
  }

  /** Looks at a page in every way, with screenshots under `name`. */
  async look(page, name) {
    this.faults.push(...(await look(page, `${plan.name}-${name}`)));
  }

  /** Looks at a page at phone width only. */
  async glance(page, name) {
    this.faults.push(...(await glance(page, `${plan.name}-${name}`)));
  }

  /** Returns the faults found at the end of the journey. */
  async verdict() {
    for (const person of this.persons) {
      for (const page of person.context.pages()) {
        await rest(page);
        if (await page.evaluate(() => '__xss' in window)) this.faults.push(`${person.name}: a script was injected`);
      }
      this.faults.push(...person.watch.verdict().map((fault) => `${person.name}: ${fault}`));
    }
    return this.faults;
  }

  /** Everything that helps to understand a failure. */
  async report() {
    let count = 0;
    for (const { name, context, watch } of this.persons) {
      for (const page of context.pages()) {
        count += 1;
        const text = await page.evaluate(() => document.body.innerText).catch((error) => String(error));
        const shot = await picture(page, `failed-${plan.name}-${count}`).catch((error) => String(error));
        console.log(`--- ${name} at ${page.url()}, screenshot ${shot}\n${text.slice(0, TEXT_MAX)}`);
      }
      console.log(`--- console of ${name}:\n${watch.log.join('\n')}`);
    }
  }
}

function launch() {
  // Root has no use of the browser's sandbox, and the browser refuses to try.
  const args = process.getuid?.() === 0 ? [...OPTIONS, '--no-sandbox'] : OPTIONS;
  return chromium.launch({ executablePath: plan.chromium, args, timeout: 60_000 });
}

/** The result of `act`, or an error when it takes longer than `ms`. */
async function within(ms, act) {
  let over;
  const time = new Promise((_, reject) => {
    over = setTimeout(() => reject(new Error(`it took longer than ${ms} ms`)), ms);
  });
  return Promise.race([act, time]).finally(() => clearTimeout(over));
}

/** Plays a story; the process ends with 0 when nothing is wrong. */
export async function play(story) {
  const browser = await launch();
  const journey = new Journey(browser);
  let failed = null;
  try {
    await story(journey);
  } catch (error) {
    failed = error;
  }
  const faults = failed ? journey.faults : await journey.verdict();
  if (failed) console.log(`At "${journey.at}": ${failed.stack ?? failed}`);
  for (const fault of faults) console.log(`FAULT ${fault}`);
  if (failed || faults.length > 0) await journey.report();
  await browser.close();
  process.exit(failed || faults.length > 0 ? 1 : 0);
}
