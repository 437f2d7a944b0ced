import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'

/** A private PostgreSQL cluster for tests and benchmarks, gone when it is stopped. */
export type Cluster = {
  url: string
  /** Makes a standby take changes. */
  promote: () => void
  /** Ends its processes at once, as a crash does; `start` has them go on with the same data. */
  crash: () => void
  start: () => void
  stop: () => void
}

/** The folder of the newest PostgreSQL that is at least 15, if there is one. */
export const postgresBinaries = (): string | undefined => {
  const base = '/usr/lib/postgresql'
  const versions = existsSync(base)
    ? readdirSync(base)
        .map(Number)
        .filter((v) => v >= 15)
        .sort((a, b) => b - a)
    : []
  const found = versions
    .map((v) => join(base, String(v), 'bin'))
    .find((dir) => existsSync(join(dir, 'initdb')))
  if (found) return found
  const { status, stdout } = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' })
  return status === 0 && existsSync(join(stdout.trim(), 'initdb')) ? stdout.trim() : undefined
}

/**
 * Starts a cluster in a folder of its own. PostgreSQL refuses to run as root, so root becomes `postgres`.
 * `primary`: the URL of the cluster of which it is to be a standby. `icuLocale`: the language by which it sorts text
 * and changes its case; as C does where it is absent. `tls`: what it encrypts connections with.
 */
export const startCluster = async (
  binaries: string,
  settings: Record<string, string> = {},
  {
    primary,
    icuLocale,
    tls,
  }: { primary?: string; icuLocale?: string; tls?: { key: string; cert: string } } = {},
): Promise<Cluster> => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-pg-'))
  const port = await freePort()
  const asRoot = userInfo().uid === 0
  if (asRoot) execFileSync('chown', ['postgres', folder])
  else chmodSync(folder, 0o700)
  const run = (program: string, ...args: string[]) => {
    const command = [join(binaries, program), ...args]
    const [file, rest] = asRoot
      ? ['runuser', ['-u', 'postgres', '--', ...command]]
      : [command[0]!, command.slice(1)]
    execFileSync(file, rest, { stdio: ['ignore', 'ignore', 'inherit'], cwd: '/' })
  }
  const data = join(folder, 'data')
  if (primary) run('pg_basebackup', '-D', data, '-d', primary, '-R', '-c', 'fast')
  else {
    const icu = icuLocale ? ['--locale-provider=icu', `--icu-locale=${icuLocale}`] : []
    run('initdb', '-D', data, '-U', 'postgres', '-E', 'UTF8', '--locale=C.UTF-8', ...icu, '-A', 'trust')
  }
  if (tls) {
    for (const [name, text] of Object.entries({ 'server.key': tls.key, 'server.crt': tls.cert })) {
      writeFileSync(join(data, name), text, { mode: 0o600 })
      if (asRoot) execFileSync('chown', ['postgres', join(data, name)])
    }
  }
  const options = Object.entries({
    ...(tls ? { ssl: 'on' } : {}),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    max_connections: '200',
    ...settings,
  })
    .map(([k, v]) => `-c ${k}=${v}`)
    .join(' ')
  const start = () =>
    run('pg_ctl', '-D', data, '-l', join(folder, 'log'), '-o', `-p ${port} ${options}`, '-w', 'start')
  const crash = () => run('pg_ctl', '-D', data, '-m', 'immediate', 'stop')
  start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    promote: () => run('pg_ctl', '-D', data, '-w', 'promote'),
    crash,
    start,
    stop: () => {
      try {
        crash()
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
  }
}
