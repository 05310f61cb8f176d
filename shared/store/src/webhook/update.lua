-- Purpose: change a webhook. After a new secret is set, the old one stays valid for a while. Nothing changes if the
--   stored secret is not the one that the caller compared the given secret with.
-- KEYS: of a change, then as script.rs names them
-- ARGV: of a change, then as script.rs names them. `member` is the webhook's name among the ready ones, `overlap` how
--   long an old secret stays valid, in ms, `judged` the stored sealed secret that the caller read or '' if no secret is
--   given, and `secret` the new sealed one or ''. `changes` come in threes: 'set' field value, or 'clear' field ''
-- Returns: {'updated', field, value, …} (the whole record) | {'missing'} | {'changed'} (the stored secret is not the
--   judged one; nothing changed) | {'no_account'}
-- Cost: O(log ready); 13 calls and one per field
local old = call('HGET', KEYS.webhook, 'secret')
if not old then return {'missing'} end
if ARGV.judged ~= '' and ARGV.judged ~= old then return {'changed'} end

if ARGV.secret ~= '' then
  call('HSET', KEYS.webhook, 'secret', ARGV.secret, 'secret_at', now, 'old_secret', old, 'old_until',
    format('%d', now_ms + tonumber(ARGV.overlap)))
end
change_fields(@KEYS.webhook, @ARGV.changes, #ARGV)
call('HSET', KEYS.webhook, 'updated_at', now)
call('HINCRBY', KEYS.account, format('%s_webhooks_version', ARGV.mode), 1)
recorded()
set_ready(@KEYS.ready, @KEYS.webhook, @KEYS.due, @KEYS.parked, ARGV.member, tonumber(call('HGET', KEYS.account, format('%s_events', ARGV.mode)) or '0'))
return {'updated', unpack(call('HGETALL', KEYS.webhook))}
