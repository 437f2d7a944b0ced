import type { Db } from '../../storage/database.ts'
import {
  findArchiveFailure,
  findOtherSchema,
  hasCollationChanged,
  listBloatedTables,
  listIdleSlots,
  listInvalidIndexes,
  listLongTransactions,
  readDatabaseSettings,
  readUsedTransactionIds,
} from '../../storage/workspace/installation.ts'
import { type Finding, formatBytes, formatSeconds, GIB, problem, warning } from './finding.ts'

const MAX_SLOT_BYTES = GIB
const LONG_TRANSACTION_SECONDS = { session: 3600, prepared: 300 }
const MIN_DEAD_ROWS = 100_000

/** Settings that must be on, with what is lost when they are not. */
const REQUIRED_SETTINGS = [
  ['fsync', 'a crash of the machine destroys the database'],
  ['full_page_writes', 'a crash of the machine can leave pages that are half written'],
  ['autovacuum', 'dead rows stay, until nothing is fast and then nothing can be written'],
  ['track_counts', 'autovacuum does not see which tables need it'],
] as const

export const checkSettings = async ({ db }: { db: Db }): Promise<Finding[]> => {
  const settings = await readDatabaseSettings(db)
  const found = REQUIRED_SETTINGS.filter(([name]) => settings[name] !== 'on').map(([name, loss]) =>
    problem(name, `${name} is off: ${loss}.`, `Set ${name} = on in postgresql.conf, and restart PostgreSQL.`),
  )
  if (settings.synchronous_commit === 'off')
    found.push(
      problem(
        'synchronous_commit',
        'synchronous_commit is off: changes that were acknowledged are lost in a crash.',
        'Set synchronous_commit = on.',
      ),
    )
  if (settings.data_checksums !== 'on')
    found.push(
      warning(
        'data_checksums',
        'Pages have no checksums: a disk that returns wrong data goes unnoticed.',
        'Stop PostgreSQL and run pg_checksums --enable.',
      ),
    )
  if (settings.shared_buffers <= GIB / 8 && settings.database_bytes > 2 * GIB)
    found.push(
      warning(
        'shared_buffers',
        `shared_buffers is ${formatBytes(settings.shared_buffers)}, for ` +
          `${formatBytes(settings.database_bytes)} of data.`,
        'Set shared_buffers to a quarter of the memory, and restart PostgreSQL.',
      ),
    )
  if (settings.connections > 0.9 * settings.max_connections)
    found.push(
      warning(
        'max_connections',
        `${settings.connections} of ${settings.max_connections} connections are taken.`,
        'Raise max_connections, lower WCRM_DATABASE_CONNECTIONS, or put PgBouncer before PostgreSQL.',
      ),
    )
  return found
}

export const checkTransactions = async ({ db }: { db: Db }): Promise<Finding[]> => {
  const used = await readUsedTransactionIds(db)
  const open = (await listLongTransactions(db, LONG_TRANSACTION_SECONDS.prepared)).filter(
    ({ seconds, prepared }) => prepared || seconds > LONG_TRANSACTION_SECONDS.session,
  )
  return [
    ...(used < 0.25
      ? []
      : [
          (used < 0.75 ? warning : problem)(
            'transaction ids',
            `${Math.round(used * 100)} % of the transaction ids are used up; at 100 % PostgreSQL takes no changes.`,
            'Find out what keeps autovacuum from its work (long transactions, idle slots), then run VACUUM FREEZE.',
          ),
        ]),
    ...open.map(({ what, seconds, prepared }) =>
      warning(
        what,
        `It has been open for ${formatSeconds(seconds)}: dead rows stay, and events after it wait.`,
        prepared
          ? 'Run COMMIT PREPARED or ROLLBACK PREPARED.'
          : 'End it, or SELECT pg_terminate_backend(pid).',
      ),
    ),
  ]
}

const checkSchema = async (db: Db): Promise<Finding[]> => {
  const other = await findOtherSchema(db)
  if (other === undefined) return []
  return [
    problem(
      'search_path',
      `The tables are in the schema ${other.tables}, but an upgrade would make new ones in ${other.created}, which ` +
        'backups leave out.',
      `Put ${other.tables} first in the search_path of the role and the database, for example with ALTER ROLE.`,
    ),
  ]
}

export const checkTables = async ({ db }: { db: Db }): Promise<Finding[]> => [
  ...(await checkSchema(db)),
  ...(await listInvalidIndexes(db)).map((name) =>
    problem(name, `The index ${name} is invalid, and not used.`, `Run REINDEX INDEX CONCURRENTLY ${name}.`),
  ),
  ...(await listBloatedTables(db, MIN_DEAD_ROWS)).map(({ name, dead, live }) =>
    warning(
      name,
      `${dead} of ${dead + live} rows are dead.`,
      `Run VACUUM ${name}; look for long transactions.`,
    ),
  ),
  ...((await hasCollationChanged(db))
    ? [
        problem(
          'collation',
          'The system sorts text otherwise than when the indexes were built: look-ups can miss rows.',
          'Run REINDEX DATABASE CONCURRENTLY, then ALTER DATABASE … REFRESH COLLATION VERSION.',
        ),
      ]
    : []),
]

export const checkReplication = async ({ db }: { db: Db }): Promise<Finding[]> => {
  const failure = await findArchiveFailure(db)
  return [
    ...(await listIdleSlots(db))
      .filter(({ bytes }) => bytes > MAX_SLOT_BYTES)
      .map(({ name, bytes }) =>
        warning(
          `slot ${name}`,
          `Nothing reads from the replication slot ${name}, which keeps ${formatBytes(bytes)} of log.`,
          'Start its standby again, or SELECT pg_drop_replication_slot(name).',
        ),
      ),
    ...(failure === undefined
      ? []
      : [
          problem(
            'archive',
            `The log is not archived: ${failure} failed. It fills the disk, and backups lack it.`,
            'Look into the log of PostgreSQL for what archive_command says.',
          ),
        ]),
  ]
}
