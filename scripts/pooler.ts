import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Cluster } from './cluster.ts'
import { freePort } from './free-port.ts'

export const isPoolerInstalled = (): boolean => spawnSync('pgbouncer', ['--version']).status === 0

const START_TIMEOUT_MS = 10_000

const canConnect = async (port: number): Promise<boolean> => {
  const socket = connect(port, '127.0.0.1')
  return await once(socket, 'connect')
    .then(() => true)
    .catch(() => false)
    .finally(() => socket.destroy())
}

/**
 * Starts a PgBouncer in transaction mode before this PostgreSQL, with its defaults: no startup parameter is
 * ignored. It refuses to run as root, so root becomes `postgres`.
 */
export const startPooler = async (target: string): Promise<Pick<Cluster, 'url' | 'stop'>> => {
  const { hostname, port: targetPort, username } = new URL(target)
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-pooler-'))
  const port = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  const server = `host=${hostname} port=${targetPort || 5432} user=${username}`
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: 'transaction',
    default_pool_size: 10,
    max_client_conn: 1000,
    // Each test has a database, whose sessions would otherwise remain after it.
    server_idle_timeout: 2,
    log_connections: 0,
    log_disconnections: 0,
    log_pooler_errors: 0,
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  writeFileSync(file, `[databases]\n* = ${server}\n[pgbouncer]\n${lines.join('\n')}\n`)
  const asRoot = userInfo().uid === 0
  if (asRoot) execFileSync('chown', ['-R', 'postgres', folder])
  const [command, ...words] = [
    ...(asRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : []),
    'pgbouncer',
    '-q',
    file,
  ]
  const child: ChildProcess = spawn(command!, words, { stdio: ['ignore', 'ignore', 'inherit'], cwd: '/' })
  const deadline = performance.now() + START_TIMEOUT_MS
  while (!(await canConnect(port))) {
    if (performance.now() > deadline || child.exitCode !== null) throw new Error('PgBouncer does not start')
    await pause(50)
  }
  return {
    url: Object.assign(new URL(target), { hostname: '127.0.0.1', port: String(port) }).href,
    stop: () => {
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
