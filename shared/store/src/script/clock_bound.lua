-- Fragment: right behind clock.lua. Refuses to do anything by a clock that differs too much from that of the calling
--   process: one of both is wrong, and what is written by a wrong clock stays wrong.
-- Takes the last two of ARGV away, both in ms: the process's time, and `store.max_clock_difference_ms`.
-- Returns: the error 'CLOCK <ms ahead> <bound>', which shared/store/src/error.rs reads.
do
  local last = #ARGV
  local ahead, bound = now_ms - ARGV[last - 1], ARGV[last] + 0
  ARGV[last - 1], ARGV[last] = nil, nil
  if ahead > bound or -ahead > bound then return {err = format('CLOCK %d %d', ahead, bound)} end
end
