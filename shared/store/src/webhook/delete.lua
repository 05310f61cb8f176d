-- Purpose: delete a webhook with all of its deliveries. With the last webhook, waiting violations are removed too.
-- KEYS: of a change, then as script.rs names them. `waiting` are the violations that wait for the end of their minute
-- ARGV: of a change, then as script.rs names them. `member` is the webhook's name among the ready ones
-- Returns: {'deleted'} | {'missing'} | {'no_account'}
-- Cost: O(deliveries); 21 calls
if call('DEL', KEYS.webhook) == 0 then return {'missing'} end
call('ZREM', KEYS.webhooks, ARGV.webhook_id)
call('ZREM', KEYS.ready, ARGV.member)
for at = @KEYS.due, @KEYS.failed do call('UNLINK', KEYS[at]) end
local left = call('ZCARD', KEYS.webhooks)
call('HSET', KEYS.account, format('%s_webhooks', ARGV.mode), left)
if left == 0 then
  call('HDEL', KEYS.account, format('%s_violations', ARGV.mode))
  for at = @KEYS.violations, @KEYS.waiting_order do call('UNLINK', KEYS[at]) end
end
call('HINCRBY', KEYS.account, format('%s_webhooks_version', ARGV.mode), 1)
recorded()
return {'deleted'}
