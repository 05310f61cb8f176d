// Texts that would do harm where a page took them for more than texts, or could not hold them.

/** Runs when a page puts it into its markup. */
export const IMAGE = '<img src=x onerror=window.__xss=1>';
/** Runs when a page puts it into an attribute, or into a script. */
export const SCRIPT = `"'><script>window.__xss=2</script>\${window.__xss=3}{{window.__xss=4}}`;
/** Runs when a page makes a link of it. */
export const LINK = 'javascript:window.__xss=5';
/** Turns what stands beside it by its letters alone: any text can. Marks of direction are refused. */
export const RIGHT_TO_LEFT = 'שלום עולם مرحبا 17';
/** Two hundred characters without a place to break. */
export const LONG = 'W'.repeat(200);
export const EMOJI = '👩🏽‍🚀🧾🏴‍☠️ 家計簿 ' + 'e\u0301\u0316'.repeat(12);

/** One for each place of a populated account; see `fixture.mjs`. */
export const HOSTILE = {
  agent: IMAGE,
  other: RIGHT_TO_LEFT,
  teller: EMOJI,
  description: `${SCRIPT} ${RIGHT_TO_LEFT}`,
  policy: `${IMAGE} ${LONG}`.slice(0, 120),
  memo: `${SCRIPT} ${RIGHT_TO_LEFT}`.slice(0, 200),
  spend: `${IMAGE} ${LONG}`.slice(0, 200),
  recipient: LINK,
  dispute: `${IMAGE} ${SCRIPT} ${EMOJI}`,
  conditions: `${SCRIPT} ${LONG}`,
  webhook: `${IMAGE} ${RIGHT_TO_LEFT}`.slice(0, 120),
  key: IMAGE,
  answer: `<html><script>window.__xss=6</script>${IMAGE}${LONG}</html>`,
};
