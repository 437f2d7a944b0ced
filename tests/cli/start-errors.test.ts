import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { type Cluster, postgresBinaries, startCluster } from '../../scripts/cluster.ts'
import { openStorage } from '../../storage/open.ts'
import { createDatabase, databases, prepareFolder, type TestDatabase, withStorage } from '../databases.ts'
import { runCli } from '../doors.ts'
import { processEnvironment } from '../process.ts'

const PASSWORD = 'not-the-password'

type Ended = { code: number; said: string }

/** Runs a command in this process: one that refuses its flags, or of the administration, which then ends by itself. */
const runHere = async (words: readonly string[], env: Record<string, string> = {}): Promise<Ended> => {
  const { exit, stderr } = await runCli([...words], env)
  return { code: exit, said: stderr }
}

/** Runs a command that cannot start, and returns its exit code and what it said. */
const run = async (
  words: readonly string[],
  env: Record<string, string> = {},
  wrapper: readonly string[] = [],
): Promise<Ended> => {
  const [program, ...args] = [...wrapper, process.execPath, 'bin/wcrm.js', ...words]
  const child = spawn(program!, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 60_000,
    env: { ...processEnvironment, WCRM_LOG_LEVEL: 'error', ...env },
  })
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  return { code, said }
}

/** One line, or an indented one below a title, which names these and no password. */
const check = ({ code, said }: Ended, expected: number, ...parts: readonly (string | RegExp)[]): void => {
  const lines = said.trimEnd().split('\n')
  assert.equal(code, expected, said)
  assert.equal(lines.length, lines[0]!.startsWith('Error: ') ? 2 : 1, said)
  for (const part of parts)
    assert.ok(typeof part === 'string' ? said.includes(part) : part.test(said), `${part} in ${said}`)
  assert.doesNotMatch(said, new RegExp(PASSWORD))
}

/** Words that take the right to listen below 1024 from root; undefined where everybody has it. */
const withoutLowPorts = (): string[] | undefined => {
  if (process.platform !== 'linux') return undefined
  if (Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8')) <= 80) return undefined
  return userInfo().uid === 0
    ? ['setpriv', '--bounding-set=-net_bind_service', '--inh-caps=-net_bind_service']
    : []
}

describe('A port that cannot be listened on', () => {
  const owner = createServer()
  let taken: string
  before(async () => {
    await once(owner.listen(0, '127.0.0.1'), 'listening')
    taken = String((owner.address() as AddressInfo).port)
  })
  after(() => owner.close())

  const unprivileged = withoutLowPorts()
  const host = '--host (WCRM_HOST)'
  const port = '--port (WCRM_PORT)'
  const metrics = 'WCRM_METRICS_LISTEN'
  const cases: Record<string, [flags: string[], listen: string, ...said: (string | RegExp)[]]> = {
    'an address of another machine': [['--host', '192.0.2.1'], '', 'the address 192.0.2.1', host],
    'an unknown host': [['--host', 'nowhere.invalid'], '', 'nowhere.invalid', host],
    'a port in use': [['--port', 'TAKEN'], '', 'port TAKEN is in use', port],
    'a port that only root may use': [['--port', '80'], '', 'may not listen on port 80', port],
    'metrics at a port in use': [[], 'TAKEN', 'port TAKEN is in use; each server', metrics],
    'metrics at another machine': [[], '192.0.2.1:0', 'the address 192.0.2.1', metrics],
    'metrics at an unknown host': [[], 'nowhere.invalid:9464', 'nowhere.invalid', metrics],
  }
  const postgres = databases.find((name) => name === 'postgresql')
  for (const count of postgres ? [1, 2] : [1])
    for (const [name, [flags, listen, ...said]] of Object.entries(cases)) {
      // Several processes report in another way, for which two of them are enough.
      if (count > 1 && !/TAKEN/.test([...flags, listen].join())) continue
      const isLow = flags.includes('80')
      const skip = isLow && !unprivileged ? 'everybody may listen on it' : false
      it(
        `ends the start with the setting to change: ${name} (${count} of its processes)`,
        { skip },
        async () => {
          // An embedded database, which is open by then, does not keep the process either. It takes seconds to open.
          const isEmbedded = count === 1 && /TAKEN/.test([...flags, listen].join())
          const database = await createDatabase(isEmbedded ? 'embedded' : (postgres ?? 'embedded'))
          const fill = (word: string) => word.replace('TAKEN', taken)
          const env: Record<string, string> = listen ? { WCRM_METRICS_LISTEN: fill(listen) } : {}
          try {
            const words = ['serve', '--no-demo', '--port', '0', ...database.flags, ...flags.map(fill)]
            const more = ['--processes', String(count)]
            const ended = await run([...words, ...more], env, isLow ? unprivileged : [])
            check(ended, 1, ...said.map((part) => (typeof part === 'string' ? fill(part) : part)))
          } finally {
            await database.remove()
          }
        },
      )
    }

  it('ends the start of a standalone sandbox with the flag to change', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wcrm-start-errors-'))
    const words = ['sandbox', 'serve', '--data', prepareFolder(folder)]
    try {
      check(await run([...words, '--port', taken]), 2, `Port ${taken} is in use`, '--port')
      check(await run([...words, '--port', '0', '--host', '192.0.2.1']), 2, '192.0.2.1', '--host')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('A database that cannot be connected to', { skip: !databases.includes('postgresql') }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-start-errors-'))
  let cluster: Cluster
  let database: TestDatabase
  before(async () => {
    const rules = `${folder}-pg_hba.conf`
    writeFileSync(rules, 'host all guarded all scram-sha-256\nhost all postgres all trust\n', { mode: 0o644 })
    cluster = await startCluster(postgresBinaries()!, { hba_file: rules })
    database = await createDatabase('postgresql')
    const storage = await openStorage({ databaseUrl: cluster.url }, { noTimeout: true })
    await sql`create role guarded login password 'the-password'`.execute(storage.db)
    await sql`create database latin template template0 encoding 'LATIN1' locale 'C'`.execute(storage.db)
    await sql`create database elsewhere`.execute(storage.db)
    await storage.close()
    const elsewhere = { databaseUrl: cluster.url.replace(/postgres$/, 'elsewhere') }
    await withStorage(elsewhere, async ({ db }) => {
      await sql`create schema ext`.execute(db)
      for (const name of ['pg_trgm', 'btree_gin'])
        await sql`create extension ${sql.id(name)} schema ext`.execute(db)
    })
  })
  after(async () => {
    cluster.stop()
    await database.remove()
    rmSync(folder, { recursive: true })
    rmSync(`${folder}-pg_hba.conf`)
  })

  const setting = '--database-url (WCRM_DATABASE_URL)'
  const user = `guarded:${PASSWORD}`
  /** SERVER is the address of the cluster. */
  const cases: Record<string, [url: string, code: number, ...said: (string | RegExp)[]]> = {
    'a wrong password': [`${user}@SERVER/postgres`, 1, '"guarded" (28P01)', 'the password in', setting],
    'a user without rights': [`nobody:${PASSWORD}@SERVER/postgres`, 1, '"nobody"', '(28000)', setting],
    'a missing database': ['postgres@SERVER/nowhere', 1, '"nowhere" does not exist (3D000)', setting],
    'an unknown host': [`${user}@nowhere.invalid/x`, 1, /host name.*\((ENOTFOUND|EAI_AGAIN)\)/, setting],
    'a refused connection': [`${user}@127.0.0.1:1/x`, 1, 'nothing listens', '(ECONNREFUSED)', setting],
    'no primary server': [
      `${user}@127.0.0.1:1,127.0.0.1:2/x?target_session_attrs=primary`,
      1,
      '(NO_SERVER)',
      setting,
    ],
    'a server without TLS': [`${user}@SERVER/postgres?sslmode=require`, 1, 'TLS', 'sslmode', setting],
    'certificates that are not there': [
      `${user}@SERVER/postgres?sslmode=verify-full&sslrootcert=/nowhere.pem`,
      1,
      'sslrootcert names /nowhere.pem, which cannot be read (ENOENT)',
      setting,
    ],
    'a key without its certificate': [
      `${user}@SERVER/postgres?sslmode=require&sslkey=/etc/wcrm/key.pem`,
      1,
      'sslcert and sslkey are given together',
      setting,
    ],
    'a parameter that nobody knows': [
      'postgres@SERVER/postgres?channel_binding=require',
      1,
      'it knows no parameter channel_binding (42704); remove channel_binding from the URL in',
      setting,
    ],
    'a port above 65535': [`${user}@127.0.0.1:99999/x`, 2, /--database-url: .*percent-encoded/],
    'the second port above 65535': [`${user}@127.0.0.1:1,127.0.0.1:99999/x`, 2, '--database-url: must'],
    'a password with a slash': [`guarded:${PASSWORD}/x@127.0.0.1/x`, 2, /--database-url: .*percent-encoded/],
    'a password with a percent sign': [`${user}%x@127.0.0.1/x`, 2, /--database-url: .*percent-encoded/],
  }
  /** It opens the database as the administration does, so these are enough for the processes of a server. */
  const served = ['a wrong password', 'an unknown host', 'a server without TLS']
  for (const [name, [url, code, ...said]] of Object.entries(cases))
    it(`ends every command with the setting to change: ${name}`, async () => {
      const flags = ['--database-url', `postgres://${url.replace('SERVER', new URL(cluster.url).host)}`]
      const serve = ['serve', '--no-demo', '--port', '0', '--data', folder, ...flags]
      check(await runHere(['admin', 'workspaces', 'list', ...flags]), code, ...said)
      if (code === 2) check(await runHere(serve), code, ...said)
      else if (served.includes(name)) check(await run(serve), code, ...said)
    })

  /** Its first start makes the tables. */
  const unfit: typeof cases = {
    'a user who may create nothing': [
      'guarded:the-password@SERVER/postgres',
      1,
      '(42501)',
      'CREATE',
      setting,
    ],
    'a database that takes no changes': [
      'postgres@SERVER/postgres?options=-c%20default_transaction_read_only%3Don',
      1,
      '(25006)',
      'primary server',
      setting,
    ],
    'another encoding': ['postgres@SERVER/latin', 1, '(22P05)', 'encoding UTF8'],
    'extensions in a schema elsewhere': ['postgres@SERVER/elsewhere', 1, '(42704)', 'search_path'],
  }
  for (const [name, [url, code, ...said]] of Object.entries(unfit))
    it(`ends the start with what the database lacks: ${name}`, async () => {
      const at = `postgres://${url.replace('SERVER', new URL(cluster.url).host)}`
      check(await run(['serve', '--port', '0', '--data', folder, '--database-url', at]), code, ...said)
    })

  it('ends a worker and a server of several processes in the same way', async () => {
    const flags = ['--database-url', `postgres://${user}@127.0.0.1:1/x`, '--data', folder]
    for (const words of [['worker'], ['serve', '--port', '0', '--processes', '2']])
      check(await run([...words, ...flags]), 1, 'nothing listens', '(ECONNREFUSED)', setting)
  })

  it('names the variable where the URL is from there, also that of the standby', async () => {
    const broken = `postgres://guarded:${PASSWORD}%@127.0.0.1/x`
    check(await runHere(['serve'], { WCRM_DATABASE_URL: broken }), 2, 'WCRM_DATABASE_URL: must look like')
    const { databaseUrl } = database.location as { databaseUrl: string }
    const env = { WCRM_DATABASE_URL: databaseUrl, WCRM_DATABASE_READ_URL: broken }
    check(await runHere(['serve'], env), 2, 'WCRM_DATABASE_READ_URL: must look like')
  })
})
