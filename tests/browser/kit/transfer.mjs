// Bytes that a page transfers, heads and bodies as sent over the wire.

/** Counts from now on: `{bytes, count}` of all finished requests of the page. */
export async function meter(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.setCacheDisabled', { cacheDisabled: true });
  const total = { bytes: 0, count: 0 };
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    total.bytes += encodedDataLength;
    total.count += 1;
  });
  return total;
}
