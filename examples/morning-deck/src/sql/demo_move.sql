-- The servers have new ports at each start; ?1 is where they are now. The host
-- ends at the first slash behind http://.
UPDATE source SET url = ?1 || substr(url, 7 + instr(substr(url, 8), '/'))
