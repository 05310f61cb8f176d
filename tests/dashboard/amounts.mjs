// The dashboard's display of amounts. Ends with "checked", or with the first failed assertion.
import assert from 'node:assert/strict';
import { parseExact } from './exact.js';
import { nanos, share, sum, typedAmount, usd, usdBrief, usdShort } from './money.js';

// No digit is lost on the way in, and text that looks like a number stays text.
const text = '{"a":0.00061485,"b":8999999.999999999,"c":9007199254740993,"d":42,"e":-1.5,"f":"0.1, \\"2.5\\": 3.5","g":[1e-9,0.10],"h":{"1.5":true},"i":null}';
assert.deepEqual(parseExact(text), {
  a: '0.00061485', b: '8999999.999999999', c: '9007199254740993', d: 42, e: '-1.5', f: '0.1, "2.5": 3.5', g: ['1e-9', '0.10'], h: { 1.5: true }, i: null,
});
assert.throws(() => parseExact('{"a":'), SyntaxError);

const shown = [
  [0, '$0.00'], ['0.00061485', '$0.00061485'], ['0.000000001', '$0.000000001'], ['8999999.999999999', '$8,999,999.999999999'],
  [1000, '$1,000.00'], ['1234567.5', '$1,234,567.50'], ['0.10', '$0.10'], ['-3.2', '-$3.20'], ['1e-9', '$0.000000001'], ['1.5e3', '$1,500.00'],
  [null, '–'], [undefined, '–'], ['many', '–'], [1_500_000_000n, '$1.50'],
];
for (const [value, as] of shown) assert.equal(usd(value), as, String(value));
assert.equal(usd(null, 'no limit'), 'no limit');

// A short form marks cut digits, and shows no small amount as zero.
assert.equal(usdShort('9.51061485'), '~$9.5106');
assert.equal(usdShort('0.00000825'), '$0.00000825');
assert.equal(usdShort('12.5'), '$12.50');

// In tables: two digits beyond the cent, or the first two of what is less than a cent; rounded half up; never nothing.
const brief = [
  ['12.34567', '$12.3457'], ['12.345', '$12.345'], ['12.5', '$12.50'], ['0.01', '$0.01'], ['0.010049999', '$0.0100'], ['0.066049', '$0.0660'], ['0.01005', '$0.0101'],
  ['0.00123456', '$0.0012'], ['0.00061485', '$0.00061'], ['0.000615', '$0.00062'], ['0.00999999', '$0.0100'], ['0.000000001', '$0.000000001'],
  ['0.000000123', '$0.00000012'], ['1234567.999999', '$1,234,568.0000'], [0, '$0.00'], [null, '–'], ['-0.00123456', '-$0.0012'], ['-2.00005', '-$2.0001'],
];
for (const [value, as] of brief) assert.equal(usdBrief(value), as, String(value));
assert.equal(usdBrief(undefined, 'none'), 'none');
for (let amount = 1n; amount < 10n ** 18n; amount = amount * 7n + 3n) {
  const shown = nanos(usdBrief(amount).replace(/[$,]/g, ''));
  const off = shown > amount ? shown - amount : amount - shown;
  assert.ok(shown > 0n && (amount < 10_000_000n ? off * 20n <= amount : off <= 50_000n), `${amount} is shown as ${shown}`);
}

assert.equal(sum(['0.1', '0.2', null, 3]), nanos('3.3'));
assert.equal(share(nanos('2.5'), nanos(10)), 0.25);
assert.equal(share(nanos(20), nanos(10)), 1);
assert.equal(share(nanos('0.5'), 0n), 1, 'a limit of nothing is used up by anything');
assert.equal(share(0n, 0n), 0);

const typed = [
  ['10', '10'], ['0.0005', '0.0005'], [' $1,000.50 ', '1000.50'], ['0.000000001', '0.000000001'],
  ['0.0000000001', null], ['1e3', null], ['-1', null], ['', null], ['1.2.3', null], ['1,5', null], ['1,5000', null], ['1,000,0', null], ['ten', null], ['.5', null], ['1000000000000', null],
];
for (const [value, as] of typed) assert.equal(typedAmount(value), as, value);

console.log('checked');
