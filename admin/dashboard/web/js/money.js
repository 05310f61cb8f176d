/**
 * Amounts of money as exact integers of nano-USD (BigInt): reading them from what the server writes, showing all their
 * digits, comparing and adding. Nothing here is a floating-point number but shares for drawing.
 */
const NANOS = 1_000_000_000n;
const CENT = NANOS / 100n;
const DECIMAL = /^(-?)(\d+)(?:\.(\d{1,9})0*)?(?:[eE]([+-]?\d{1,3}))?$/;

/**
 * The amount of a field, or null when there is none.
 * @param {string|number|null|undefined} value
 * @returns {bigint|null}
 */
export function nanos(value) {
  if (value === null || value === undefined || value === '') return null;
  const found = DECIMAL.exec(String(value));
  if (!found) return null;
  const [, sign, whole, fraction = '', exponent = '0'] = found;
  let amount = BigInt(whole) * NANOS + BigInt(fraction.padEnd(9, '0'));
  const shift = Number(exponent);
  amount = shift < 0 ? amount / 10n ** BigInt(-shift) : amount * 10n ** BigInt(shift);
  return sign ? -amount : amount;
}

/**
 * As people read it: `$1,234.50`, `$0.00061485`. At least two decimals, never fewer than the amount has.
 * @param {string|number|bigint|null|undefined} value a server amount, or nanos as BigInt
 * @param {string} none what stands for no amount
 */
export function usd(value, none = '–') {
  const amount = typeof value === 'bigint' ? value : nanos(value);
  if (amount === null) return none;
  const size = amount < 0n ? -amount : amount;
  const whole = (size / NANOS).toString().replace(/\B(?=(\d{3})+$)/g, ',');
  const fraction = (size % NANOS).toString().padStart(9, '0').replace(/0+$/, '').padEnd(2, '0');
  return `${amount < 0n ? '-' : ''}$${whole}.${fraction}`;
}

/**
 * As tables show it, so that a column can be read: an amount of a cent or more with two digits beyond the cent, and less than
 * a cent with its first two significant digits; rounded half up, and nothing that is there becomes nothing. `$12.3457`,
 * `$0.0012`, `$0.00061`; what was rounded keeps its zeros (`$0.0660`), what is exact has none (`$12.50`). The exact amount
 * (`usd`) is the title, and exports have it.
 * @param {string|number|bigint|null|undefined} value
 * @param {string} none what stands for no amount
 */
export function usdBrief(value, none = '–') {
  const amount = typeof value === 'bigint' ? value : nanos(value);
  if (amount === null) return none;
  const size = amount < 0n ? -amount : amount;
  const unit = size >= CENT ? CENT / 100n : 10n ** BigInt(Math.max(0, size.toString().length - 2));
  const rounded = ((size + unit / 2n) / unit) * unit;
  const text = usd(amount < 0n ? -rounded : rounded);
  const digits = 10 - unit.toString().length;
  return rounded === size ? text : text.padEnd(text.indexOf('.') + 1 + digits, '0');
}

/**
 * For places with little room (axes, tiles): cut to at most `digits` decimals, marked with ~ where something was cut off.
 * The exact amount stands beside it or in its title.
 * @param {string|number|bigint|null|undefined} value
 */
export function usdShort(value, digits = 4) {
  const amount = typeof value === 'bigint' ? value : nanos(value);
  if (amount === null) return '–';
  const unit = 10n ** BigInt(9 - digits);
  const cut = (amount / unit) * unit;
  if (cut === amount) return usd(amount);
  return cut === 0n ? usd(amount) : `~${usd(cut)}`;
}

/**
 * What a person typed, as the exact decimal text that the server takes, or null when it is no amount.
 * @param {string} typed e.g. "1,000.50" or "$0.0001"
 */
export function typedAmount(typed) {
  const given = typed.trim().replace(/^\$/, '');
  // A comma is taken only where it separates thousands: in other countries it is the decimal point.
  const plain = /^\d{1,3}(,\d{3})+(\.\d+)?$/.test(given) ? given.replaceAll(',', '') : given;
  return /^\d{1,12}(\.\d{1,9})?$/.test(plain) ? plain : null;
}

/**
 * The share of `part` in `whole` between 0 and 1, for drawing only.
 * @param {bigint|null} part
 * @param {bigint|null} whole
 */
export function share(part, whole) {
  if (part === null || whole === null || part <= 0n) return 0;
  if (whole <= 0n) return 1;
  return Math.min(1, Number((part * 10_000n) / whole) / 10_000);
}

/**
 * The sum of server amounts; missing ones count nothing.
 * @param {Array<string|number|null>} values
 */
export function sum(values) {
  return values.reduce((total, value) => total + (nanos(value) ?? 0n), 0n);
}
