// Every page of the dashboard, with the addresses of the records of a populated account.

/** Pages for people who are signed in: a name for the screenshots, and the address behind the `#`. */
export async function tour(call, made) {
  const { reader, travel, denied, exhausted, escrows, waiting, webhook } = made;
  const { intents } = await call('GET', '/intents?kind=escrow_dispute');
  return [
    ['overview', '/'],
    ['agents', '/agents'],
    ['agents-search', '/agents?q=travel'],
    ['agent', `/agents/${reader.id}`],
    ['agent-frozen', `/agents/${travel.id}`],
    ['decision', `/decisions/${denied}`],
    ['decision-stream', `/decisions/${exhausted}`],
    ['calls', '/calls'],
    ['usage', '/usage?by=agent'],
    ['connect', '/connect'],
    ['wallets', '/wallets'],
    ['wallet', `/wallets/${reader.wallet}`],
    ['escrows', '/escrow'],
    ['escrow-funded', `/escrow/${escrows.funded}`],
    ['escrow-disputed', `/escrow/${escrows.disputed}`],
    ['intents', '/intents'],
    ['intent-waiting', `/intents/${waiting}`],
    ['intent-dispute', `/intents/${intents[0].intent_id}`],
    ['audit', '/audit'],
    ['webhooks', '/webhooks'],
    ['webhook', `/webhooks/${webhook.id}`],
    ['team', '/team'],
    ['api-keys', '/api-keys'],
    ['plan', '/plan'],
    ['settings', '/settings'],
    ['nowhere', '/nowhere'],
  ];
}
