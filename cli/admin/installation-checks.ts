import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Config } from '../../server/config.ts'
import { erasureVersions } from '../../server/domains/erasures/steps.ts'
import {
  describeMediaLocation,
  type MediaLocation,
  mediaLocationsOf,
} from '../../server/domains/media/location.ts'
import { openMediaStore } from '../../server/domains/media/open-store.ts'
import { chooseProvider, SANDBOX_TOKEN_PREFIX } from '../../server/provider/settings.ts'
import { version } from '../../server/version.ts'
import type { Db } from '../../storage/database.ts'
import {
  countOldAccounts,
  countOldKeys,
  readDatabaseClock,
  withStatementTimeout,
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
import { listUnmatchedMessages } from '../../storage/channels/provider-updates.ts'
import { readQueues } from '../../storage/work/queues.ts'
import { countLaterRuns } from '../../storage/work/runs.ts'
import { findSecretSince, listServers } from '../../storage/access/secrets.ts'
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

const checkSettings = async ({ db }: { db: Db }): Promise<Finding[]> => {
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

const checkTransactions = async ({ db }: { db: Db }): Promise<Finding[]> => {
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

const checkTables = async ({ db }: { db: Db }): Promise<Finding[]> => [
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

const checkReplication = async ({ db }: { db: Db }): Promise<Finding[]> => {
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

type Installation = { db: Db; config: Config }

type InstallationCheck = {
  name: string
  /** What it asks: any database, what only PostgreSQL has, or none. */
  asks: 'database' | 'postgresql' | 'none'
  run: (installation: Installation) => Promise<Finding[]>
}

const CHECK_TIMEOUT_MS = 5000

const MAX_CLOCK_DIFFERENCE_MS = 5000
/** After this many seconds, what waits in a queue is late, and then a sign that nothing works on it. */
const QUEUE_SECONDS = { warning: 300, problem: 3600 }
const MAX_QUEUE_COUNT = 10_000
/** Days after which a secret should be replaced, and after which a key that nobody used should be revoked. */
const AGE_DAYS = { secret: 400, unusedKey: 180 }
/** Free space: below the greater of share and bytes. */
const FREE_SPACE = { warning: { share: 0.1, bytes: GIB }, problem: { share: 0.02, bytes: GIB / 5 } }

const checkQueues = async ({ db }: Installation): Promise<Finding[]> =>
  (await readQueues(db, MAX_QUEUE_COUNT))
    .filter(({ oldestSeconds }) => oldestSeconds > QUEUE_SECONDS.warning)
    .map(({ queue, due, oldestSeconds }) =>
      (oldestSeconds > QUEUE_SECONDS.problem ? problem : warning)(
        `queue ${queue}`,
        `${due >= MAX_QUEUE_COUNT ? `${due} or more wait` : due === 1 ? '1 waits' : `${due} wait`} in ${queue}, the ` +
          `first for ${formatSeconds(oldestSeconds)}.`,
        'Check that a server runs, and its log; add wcrm worker if it cannot keep up.',
      ),
    )

/** They are late in their queue too, but no server of this version would take them. */
const checkLaterErasures = async ({ db }: Installation): Promise<Finding[]> => {
  const count = await countLaterRuns(db, { kind: 'erasures', knows: erasureVersions })
  if (count === 0) return []
  return [
    problem(
      'erasures',
      `${count === 1 ? '1 erasure' : `${count} erasures`} of a later version than ${version} cannot end here: ` +
        'copies of the personal data stay until a server of that version has erased them.',
      'Start a server of the version that the database ran with before the downgrade, or of a later one.',
    ),
  ]
}

const checkServers = async ({ db }: Installation): Promise<Finding[]> => {
  const servers = await listServers(db)
  const versions = new Set(servers.map(({ version }) => version ?? 'an older one'))
  const clocks: [string, number][] = [
    ['this machine', -(await readDatabaseClock(db, new Date().toISOString()))],
    ...servers.flatMap(({ version, clockAheadMs }): [string, number][] =>
      clockAheadMs === null ? [] : [[`a server of version ${version}`, clockAheadMs]],
    ),
  ]
  return [
    ...(versions.size < 2
      ? []
      : [
          warning(
            'versions',
            `Servers of several versions run: ${[...versions].toSorted().join(', ')}.`,
            'Finish the upgrade; versions that follow each other may run side by side meanwhile.',
          ),
        ]),
    ...clocks
      .filter(([, ahead]) => Math.abs(ahead) > MAX_CLOCK_DIFFERENCE_MS)
      .map(([whose, ahead]) =>
        problem(
          'clock',
          `The clock of ${whose} is ${Math.round(Math.abs(ahead) / 1000)} seconds ` +
            `${ahead > 0 ? 'ahead of' : 'behind'} that of the database.`,
          'Run chrony or systemd-timesyncd on both machines: signatures and leases depend on the time.',
        ),
      ),
  ]
}

const checkProvider = async ({ config }: Installation): Promise<Finding[]> => {
  const embedded = config.databaseUrl === undefined
  const isSandbox =
    chooseProvider(config, embedded) === 'sandbox' ||
    config.providerToken?.startsWith(SANDBOX_TOKEN_PREFIX) === true
  const isPublic =
    config.publicUrl !== undefined && !/^https?:\/\/(localhost|127\.|\[::1\])/.test(config.publicUrl)
  if (!isSandbox || (embedded && !isPublic)) return []
  return [
    (isPublic ? problem : warning)(
      'provider',
      `Messages go to the sandbox and reach no customer${isPublic ? `, at ${config.publicUrl}` : ''}.`,
      'Set WCRM_PROVIDER_URL and its secrets, or WCRM_PROVIDER=none.',
    ),
  ]
}

/** Messages that arrived for nobody. */
const checkMessages = async ({ db }: Installation): Promise<Finding[]> =>
  (await listUnmatchedMessages(db)).map(({ number, channel_id: channelId, count, since }) => {
    const what = `${count === 1 ? '1 message' : `${count} messages`} since ${since}`
    return channelId === null
      ? problem(
          `number ${number}`,
          `${what} for a number without a channel: nobody sees them.`,
          `Give it a channel: wcrm admin channels create --type chatapp … --provider-phone-number-id ${number}. ` +
            'They are applied then.',
        )
      : warning(
          `channel ${channelId}`,
          `${what} from senders of a form that this version does not know: nobody sees them.`,
          'Start a later version: it applies them.',
        )
  })

const checkSecrets = async ({ db }: Installation): Promise<Finding[]> => {
  const since = await findSecretSince(db)
  const days = since === undefined ? 0 : (Date.now() - Date.parse(since)) / 86_400_000
  const keys = await countOldKeys(db, {
    unusedDays: AGE_DAYS.unusedKey,
    oldDays: AGE_DAYS.secret,
  })
  const accounts = await countOldAccounts(db, AGE_DAYS.secret)
  const found: Finding[] = []
  if (days > AGE_DAYS.secret)
    found.push(
      warning(
        'WCRM_SECRET',
        `The secret has been in use for ${Math.round(days)} days.`,
        'Rotate it: see docs/operations.md, "Rotating the secret".',
      ),
    )
  if (keys.unused > 0)
    found.push(
      warning(
        'API keys',
        `Keys not used for ${AGE_DAYS.unusedKey} days: ${keys.unused}.`,
        'Revoke them: wcrm admin keys list, then wcrm admin keys revoke.',
      ),
    )
  if (keys.old > 0)
    found.push(
      warning(
        'API keys',
        `Keys that are older than ${AGE_DAYS.secret} days: ${keys.old}.`,
        'Rotate them: wcrm admin keys rotate.',
      ),
    )
  if (accounts > 0)
    found.push(
      warning(
        'provider accounts',
        `Accounts at the provider whose credentials were not changed for ${AGE_DAYS.secret} days: ${accounts}.`,
        'Renew them: wcrm admin accounts update.',
      ),
    )
  return found
}

/** The nearest folder that exists: one that is still to be made lies on the same disk. */
const readFreeSpace = async (path: string): Promise<{ free: number; total: number } | undefined> => {
  try {
    const { bavail, blocks, bsize } = await statfs(path)
    return { free: bavail * bsize, total: blocks * bsize }
  } catch (error) {
    const parent = dirname(path)
    return (error as NodeJS.ErrnoException).code === 'ENOENT' && parent !== path
      ? await readFreeSpace(parent)
      : undefined
  }
}

const toFolder = (location: MediaLocation | undefined): string[] =>
  location?.kind === 'folder' ? [location.folder] : []

const checkDisk = async ({ config }: Installation): Promise<Finding[]> => {
  const { location, previous } = mediaLocationsOf(config)
  const folders = [
    ...(config.databaseUrl === undefined ? [config.dataDir] : []),
    ...toFolder(location),
    ...toFolder(previous),
  ]
  const found: Finding[] = []
  for (const folder of new Set(folders.map((path) => resolve(path)))) {
    const space = await readFreeSpace(folder)
    if (!space) continue
    const isBelow = ({ share, bytes }: { share: number; bytes: number }): boolean =>
      space.free < bytes || (space.free < share * space.total && space.free < 20 * bytes)
    if (!isBelow(FREE_SPACE.warning)) continue
    const detail = `${formatBytes(space.free)} of ${formatBytes(space.total)} are free for ${folder}.`
    const fix = 'Free some space, or use a larger disk: changes are refused when it is full.'
    found.push((isBelow(FREE_SPACE.problem) ? problem : warning)('disk', detail, fix))
  }
  return found
}

const checkMedia = async ({ config }: Installation): Promise<Finding[]> => {
  const { location, previous } = mediaLocationsOf(config)
  const checks = [location, ...(previous ? [previous] : [])].map(async (place) => ({
    about: describeMediaLocation(place),
    checked: await (await openMediaStore(place)).check(),
  }))
  return (await Promise.all(checks)).flatMap(({ about, checked }) =>
    checked.ok ? [] : [problem(about, checked.detail, checked.fix)],
  )
}

/** The checks of the installation as a whole, in the order in which they are reported. */
const installationChecks: readonly InstallationCheck[] = [
  { name: 'media_store', asks: 'none', run: checkMedia },
  { name: 'disk', asks: 'none', run: checkDisk },
  { name: 'database_settings', asks: 'postgresql', run: checkSettings },
  { name: 'transactions', asks: 'postgresql', run: checkTransactions },
  { name: 'tables', asks: 'database', run: checkTables },
  { name: 'replication', asks: 'postgresql', run: checkReplication },
  { name: 'queues', asks: 'database', run: checkQueues },
  { name: 'later_erasures', asks: 'database', run: checkLaterErasures },
  { name: 'servers', asks: 'database', run: checkServers },
  { name: 'provider', asks: 'none', run: checkProvider },
  { name: 'messages', asks: 'database', run: checkMessages },
  { name: 'secrets', asks: 'database', run: checkSecrets },
]

/** Runs the checks. One that fails is a finding itself, and keeps no other from running. */
export const checkInstallation = async ({
  db,
  config,
}: Installation): Promise<(Finding & { check: string })[]> => {
  const found: (Finding & { check: string })[] = []
  for (const { name: check, asks, run } of installationChecks) {
    if (asks === 'postgresql' && config.databaseUrl === undefined) continue
    try {
      const findings =
        asks === 'none'
          ? await run({ db, config })
          : await withStatementTimeout(db, CHECK_TIMEOUT_MS, (tx) => run({ db: tx, config }))
      found.push(...findings.map((finding) => ({ check, ...finding })))
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      const why =
        code === '57014' ? `it took more than ${CHECK_TIMEOUT_MS / 1000} seconds` : (code ?? message)
      found.push({ check, ...warning(check, `It could not be checked: ${why}.`, 'Try again later.') })
    }
  }
  return found
}
