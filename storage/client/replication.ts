import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { executeAndCommit } from './driver.ts'

/**
 * Commits a transaction that only read, once what it read is at the synchronous standbys too, if there are some. A
 * server that was cut off from them shows changes that will be lost with it. A message in the log, which nobody
 * reads, makes the commit wait.
 */
export const commitReplicated = async (tx: Db): Promise<void> => {
  const statement = sql`
    select case when current_setting('synchronous_standby_names') <> ''
      then pg_logical_emit_message(true, 'wcrm', '') is not null end`
  await executeAndCommit(tx, statement)
}
