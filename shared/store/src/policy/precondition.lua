-- Fragment: the precondition of a change or deletion of a policy.

-- Returns whether the policy is not as `expected` says: '' (anything) | 'none' (no policy may exist) | 'any' (one must
-- exist) | the accepted revisions, each between spaces. `revision` is false if there is no policy.
local function is_unexpected(expected, revision)
  if expected == '' then return false end
  if not revision then return expected ~= 'none' end
  if expected == 'none' then return true end
  return expected ~= 'any' and not string.find(expected, format(' %s ', revision), 1, true)
end
