import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import postgres from 'postgres'
import { postgresBinaries, startCluster } from './cluster.ts'
import { freePort } from './free-port.ts'

/**
 * Upgrades two servers of a previous version to this one while clients write (docs/operations.md, "Upgrading"):
 * `npm run test:upgrade [-- COMMIT]`. Prints figures; exits with 1 when a write was lost or doubled, or a request
 * failed twice. Needs PostgreSQL, and the history of the repository: a shallow clone may lack the commit.
 */
const PREVIOUS = process.argv[2] ?? 'fd781ce'
const CLIENTS = 8
const SECRET = 'a secret of this measurement alone'

type Server = { url: string; process: ChildProcess; apiKey: string | undefined }

const folder = mkdtempSync(join(tmpdir(), 'wcrm-upgrade-'))
const previous = join(folder, 'previous')

const checkOut = (): void => {
  if (spawnSync('git', ['cat-file', '-e', `${PREVIOUS}^{commit}`]).status !== 0)
    throw new Error(`the commit ${PREVIOUS} is not in this clone: run git fetch --unshallow first`)
  execFileSync('git', ['worktree', 'add', '--quiet', '--detach', previous, PREVIOUS])
  // Its own dependencies would have to be downloaded; those of this version serve it too, or it does not start.
  symlinkSync(resolve('node_modules'), join(previous, 'node_modules'))
}

const environment = (url: string): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  HOME: folder,
  WCRM_DATA: folder,
  WCRM_DATABASE_URL: url,
  WCRM_SECRET: SECRET,
  WCRM_LOG_LEVEL: 'error',
  WCRM_PROVIDER: 'sandbox',
  WCRM_SHUTDOWN_GRACE: '1',
  WCRM_LIMIT_WRITE: '1000000',
  WCRM_LIMIT_READ: '1000000',
})

/** Starts a server of the version in a folder, and waits until it is ready. */
const start = async (cwd: string, url: string, port: number, ...flags: string[]): Promise<Server> => {
  const child = spawn(
    process.execPath,
    ['bin/wcrm.js', 'serve', '--json', '--port', String(port), ...flags],
    {
      cwd,
      env: environment(url),
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let errors = ''
  child.stderr!.on('data', (text: Buffer) => (errors += text.toString()))
  const line = once(createInterface({ input: child.stdout! }), 'line')
  const ended = once(child, 'exit').then(([code]) => {
    throw Object.assign(new Error(errors.trim()), { exitCode: code as number })
  })
  // It also ends after it was ready.
  ended.catch(() => {})
  const [text] = (await Promise.race([line, ended])) as [string]
  const said = JSON.parse(text) as { url: string; api_key?: string }
  return { url: said.url, process: child, apiKey: said.api_key }
}

const stop = async ({ process: child }: Server): Promise<void> => {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

const counts = { written: 0, repeated: 0, failed: 0, slowestMs: 0, slowest: '' }
const acknowledged = new Map<string, string>()
const state = { phase: 'before', isOver: false }

/** Sends one change. A failure that a client repeats is repeated once, at the other server, under the same key. */
const write = async (urls: readonly string[], apiKey: string, n: number): Promise<void> => {
  const phone = `1555${String(n).padStart(7, '0')}`
  const request = {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': `upgrade-${n}`,
    },
    body: JSON.stringify({ phone: `+${phone}`, name: `Customer ${n}` }),
  }
  const startedAt = performance.now()
  for (const attempt of [0, 1]) {
    const answer = await fetch(`${urls[(n + attempt) % 2]}/v1/contacts`, request).catch(() => undefined)
    const body = answer?.ok ? ((await answer.json().catch(() => undefined)) as { id: string }) : undefined
    if (body) {
      counts.written++
      acknowledged.set(phone, body.id)
      break
    }
    if (attempt === 0) counts.repeated++
    else {
      counts.failed++
      console.log(`failed (${state.phase}): ${answer?.status} ${(await answer?.text())?.slice(0, 200)}`)
    }
  }
  const ms = performance.now() - startedAt
  if (ms > counts.slowestMs) Object.assign(counts, { slowestMs: ms, slowest: state.phase })
}

const runClients = async (urls: readonly string[], apiKey: string): Promise<void> => {
  let next = 0
  const client = async (): Promise<void> => {
    while (!state.isOver) await write(urls, apiKey, next++)
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
}

/** Compares what was acknowledged with the database: contacts, and one event for each that was created. */
const verify = async (url: string): Promise<{ lost: number; doubled: number }> => {
  const sql = postgres(url, { max: 1 })
  try {
    const rows = await sql<{ id: string; phone: string; events: number }[]>`
      select c.id::text, c.phone, count(e.id)::int as events
      from contacts c left join events e on e.workspace_id = c.workspace_id and e.type = 'contact.created/1'
        and e.data->'contact'->>'id' = c.id::text
      where c.name like 'Customer %' group by c.id, c.phone`
    const stored = new Map(rows.map((row) => [row.phone, row.id]))
    const lost = [...acknowledged].filter(([phone, id]) => stored.get(phone) !== id).length
    return { lost, doubled: rows.length - stored.size + rows.filter(({ events }) => events !== 1).length }
  } finally {
    await sql.end()
  }
}

const measure = async (url: string): Promise<number> => {
  const ports = [await freePort(), await freePort()]
  const first = await start(previous, url, ports[0]!)
  const servers = [first, await start(previous, url, ports[1]!, '--no-demo')]
  const clients = runClients(
    servers.map((server) => server.url),
    first.apiKey!,
  )
  try {
    await pause(3000)
    state.phase = 'migration'
    const startedAt = performance.now()
    const migrated = execFileSync(process.execPath, ['bin/wcrm.js', 'admin', 'migrate', '--json'], {
      env: environment(url),
      encoding: 'utf8',
    })
    const names = (JSON.parse(migrated) as { data: { name: string }[] }).data.map(({ name }) => name)
    console.log(`migrated in ${Math.round(performance.now() - startedAt)} ms: ${names.join(', ')}`)
    state.phase = 'both versions'
    await pause(2000)
    for (const [n, server] of servers.entries()) {
      state.phase = `replacement of server ${n + 1}`
      await stop(server)
      servers[n] = await start('.', url, ports[n]!, '--no-demo', '--no-migrate')
    }
    state.phase = 'after'
    await pause(2000)
    const refusal = await start(previous, url, await freePort(), '--no-demo').then(
      async (server) => (await stop(server), 'NOT REFUSED'),
      (error: Error & { exitCode?: number }) => `exit ${error.exitCode}: ${error.message}`,
    )
    console.log(`previous version, started on the new schema: ${refusal}`)
  } finally {
    state.isOver = true
    await clients
    await Promise.all(servers.map(stop))
  }
  const { lost, doubled } = await verify(url)
  const { written, repeated, failed, slowestMs, slowest } = counts
  console.log(
    `${written} writes acknowledged, ${repeated} repeated once, ${failed} failed twice, ${lost} lost, ` +
      `${doubled} doubled; the slowest took ${Math.round(slowestMs)} ms (${slowest})`,
  )
  return written > 0 && failed + lost + doubled === 0 ? 0 : 1
}

const binaries = postgresBinaries()
if (!binaries) throw new Error('needs the programs of PostgreSQL 15 or newer')
try {
  checkOut()
  const cluster = await startCluster(binaries)
  try {
    process.exitCode = await measure(cluster.url)
  } finally {
    cluster.stop()
  }
} finally {
  spawnSync('git', ['worktree', 'remove', '--force', previous])
  rmSync(folder, { recursive: true, force: true })
}
