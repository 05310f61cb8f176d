/**
 * Amounts of money as exact integers of nano-USD (BigInt): parsing the server's amounts, formatting, comparing and
 * adding. Only shares for drawing are floating-point numbers.
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
 * Formats all digits: `$1,234.50`, `$0.00061485`. At least two decimals, never fewer than the amount has.
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
 * Rounds an amount for a column of a table, half up: from one cent on to four decimals (`$12.3457`), below a cent to
 * two significant digits (`$0.0012`, `$0.00061`), so no amount is rounded to zero. A rounded amount keeps its trailing
 * zeros (`$0.0660`); an exact one has none (`$12.50`). Titles and exports have the exact amount (`usd`).
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
 * For narrow places (axes, tiles): truncated to at most `digits` decimals, marked with ~ if digits were cut off.
 * The exact amount is shown beside it or in the title.
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
 * Converts typed text to the exact decimal text that the server accepts. Returns null if it is no amount.
 * @param {string} typed e.g. "1,000.50" or "$0.0001"
 */
export function typedAmount(typed) {
  const given = typed.trim().replace(/^\$/, '');
  // Commas are accepted only between thousands: many countries use the comma as the decimal point.
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
 * The sum of server amounts; missing ones count as zero.
 * @param {Array<string|number|null>} values
 */
export function sum(values) {
  return values.reduce((total, value) => total + (nanos(value) ?? 0n), 0n);
}
