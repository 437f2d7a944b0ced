import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'

/** A machine of its own in the network: a namespace, whose link goes to a bridge on which this process is, too. */
export type Host = { name: string; address: string }

const BRIDGE = 'wcrm-bridge'
export const NETWORK = '10.77.0.0/24'

const ip = (...args: string[]): void =>
  void execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] })

const FOLDER = 'WCRM_FAILOVER_FOLDER'

/**
 * Runs this program again in namespaces of its own (network, mounts, processes), and there calls `work` with an empty
 * folder; sets the exit code. Whatever it starts ends with it, and no address, mount or process of it is seen outside.
 */
export const runInNamespaces = async (work: (folder: string) => Promise<number>): Promise<void> => {
  const inside = process.env[FOLDER]
  // Sockets to machines that were cut off may still be open, so that it would not end by itself.
  if (inside) process.exit(await work(inside))
  if (userInfo().uid !== 0) throw new Error('run it as root: it gives each machine a network of its own')
  const script = 'mount -t tmpfs tmpfs /run/netns 2> /dev/null; "$@"; exit $?'
  const words = [
    '--net',
    '--mount',
    '--pid',
    '--fork',
    '--kill-child',
    '--mount-proc',
    'sh',
    '-c',
    script,
    'sh',
  ]
  mkdirSync('/run/netns', { recursive: true })
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-failover-'))
  // The database runs as another user.
  chmodSync(folder, 0o755)
  const { status } = spawnSync('unshare', [...words, process.execPath, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, [FOLDER]: folder },
  })
  if (!process.env['WCRM_FAILOVER_KEEP']) rmSync(folder, { recursive: true, force: true })
  process.exitCode = status ?? 1
}

/** Creates a network with so many hosts. */
export const createNetwork = (names: readonly string[]): Host[] => {
  ip('link', 'set', 'lo', 'up')
  ip('link', 'add', BRIDGE, 'type', 'bridge')
  ip('addr', 'add', '10.77.0.1/24', 'dev', BRIDGE)
  ip('link', 'set', BRIDGE, 'up')
  return names.map((name, i) => {
    const address = `10.77.0.${11 + i}`
    ip('netns', 'add', name)
    ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
    ip('link', 'set', name, 'master', BRIDGE, 'up')
    ip('-n', name, 'addr', 'add', `${address}/24`, 'dev', 'eth0')
    ip('-n', name, 'link', 'set', 'eth0', 'up')
    ip('-n', name, 'link', 'set', 'lo', 'up')
    return { name, address }
  })
}

/** The words that run a program on a host. */
export const onHost = ({ name }: Host): string[] => ['nsenter', `--net=/run/netns/${name}`, '--']

/** Unplugs a host: what is sent to it, and what it sends, disappears without any answer. */
export const cutOff = ({ name }: Host): void => ip('link', 'set', name, 'nomaster')

export const reconnect = ({ name }: Host): void => ip('link', 'set', name, 'master', BRIDGE)

/** Gives a folder a disk of its own, in memory. */
export const mountDisk = (folder: string, megabytes: number): void => {
  mkdirSync(folder, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder])
}

/** Takes all that is left of a disk, and returns the file that does. */
export const fillDisk = (folder: string): string => {
  const path = join(folder, 'filling')
  const file = openSync(path, 'w')
  // What others free meanwhile is taken too, down to the last page.
  for (const size of [1_048_576, 4096])
    try {
      for (const chunk = Buffer.alloc(size); ;) writeSync(file, chunk)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  closeSync(file)
  return path
}
