import { execFile, spawn } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

export type Terminal = {
  /** Types this text. */
  readonly type: (text: string) => void
  /** Waits for a text in what is printed from now on. Returns false when it does not come, or the process has ended. */
  readonly waitFor: (text: string, ms?: number) => Promise<boolean>
  readonly resize: (columns: number, rows: number) => void
  readonly signal: (name: NodeJS.Signals) => void
  /** The last of what was printed. */
  readonly printed: () => string
  /** Resolves to the exit code when the process has ended. Rejects when the terminal is not as it was before. */
  readonly ended: Promise<number>
  /** Ends the process if it is running. Resolves when all of its processes have ended. */
  readonly close: () => Promise<void>
  /** The most memory that the process had, in MB. */
  readonly peakMemory: () => number
  /** The processor time that the process has used, in milliseconds. */
  readonly processorTime: () => number
}

/** Sets the size of the terminal, runs the given command, and prints its process id and the terminal's modes. */
const SHELL = `
trap : INT
stty cols "$1" rows "$2"; shift 2
before=$(stty -g)
sh -c 'echo "process $$"; exec "$@"' sh "$@"
code=$?
if [ "$before" = "$(stty -g)" ]; then echo "ended $code restored"; else echo "ended $code changed"; fi
`

/** The sequences that leave the alternate screen, show the cursor, and turn bracketed paste off. */
const RESTORING = ['\u001b[?1049l', '\u001b[?25h', '\u001b[?2004l']
/** The number of characters of the output that are kept. */
const KEPT = 100_000

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Whether a mode was left after it was last entered. */
const isLast = (printed: string, off: string): boolean => {
  const on = off.endsWith('l') ? `${off.slice(0, -1)}h` : `${off.slice(0, -1)}l`
  return printed.lastIndexOf(off) >= printed.lastIndexOf(on)
}

/** Runs a program on a terminal of its own, which `script` of util-linux makes. */
export const spawnOnTerminal = (words: readonly string[], env: NodeJS.ProcessEnv) =>
  spawn('script', ['--quiet', '--flush', '--command', words.map(quote).join(' '), '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], TERM: 'xterm-256color', LANG: 'C.UTF-8', SHELL: '/bin/sh', ...env },
  })

/** Runs `wcrm` on a terminal of its own. */
export const openTerminal = (
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  size?: readonly [number, number],
): Terminal => openTerminalOf([process.execPath, 'bin/wcrm.js', ...words], env, size)

/** Runs a command on a terminal of its own. */
export const openTerminalOf = (
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  [columns, rows]: readonly [number, number] = [120, 32],
): Terminal => {
  const run = [SHELL, 'sh', String(columns), String(rows), ...command]
  const child = spawnOnTerminal(['sh', '-c', ...run], env)
  let [printed, pid, memory] = ['', 0, 0]
  const decoder = new TextDecoder()
  const watchers = new Set<(text: string) => void>()
  child.stdin.on('error', () => {})
  child.stdout.on('data', (chunk: Buffer) => {
    const text = decoder.decode(chunk, { stream: true })
    printed = (printed + text).slice(-KEPT)
    pid ||= Number(/process (\d+)\r?\n/.exec(printed)?.[1] ?? 0)
    for (const watch of watchers) watch(text)
  })
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const ended = gone.then(() => {
    const [, code, modes] = /ended (\d+) (\w+)\r?\n/.exec(printed) ?? []
    const missing = RESTORING.filter((off) => !isLast(printed, off))
    if (code !== undefined && modes === 'restored' && missing.length === 0) return Number(code)
    throw new Error(`The terminal was not restored: ${JSON.stringify({ code, modes, missing, printed })}`)
  })
  ended.catch(() => {})
  const signal = (name: NodeJS.Signals): void => {
    try {
      if (pid > 0) process.kill(pid, name)
    } catch {
      // It has already ended.
    }
  }
  return {
    type: (text) => void child.stdin.write(text),
    waitFor: async (text, ms = 5000) => {
      let since = ''
      let found = (_: boolean): void => {}
      const isThere = new Promise<boolean>((resolve) => (found = resolve))
      const watch = (more: string): void => {
        since += more
        if (since.includes(text)) found(true)
      }
      watchers.add(watch)
      const stop = new AbortController()
      const late = pause(ms, false, { signal: stop.signal }).catch(() => false)
      const result = await Promise.race([isThere, gone.then(() => false), late])
      stop.abort()
      watchers.delete(watch)
      return result
    },
    resize: (width, height) => {
      try {
        const terminal = readlinkSync(`/proc/${pid}/fd/0`)
        execFile('stty', ['-F', terminal, 'cols', String(width), 'rows', String(height)], () => {})
      } catch {
        // It has not begun, or has ended.
      }
    },
    signal,
    printed: () => printed.slice(-1500),
    ended,
    close: async () => {
      signal('SIGKILL')
      child.stdin.end()
      const late = setTimeout(() => child.kill('SIGKILL'), 5000)
      await gone
      clearTimeout(late)
    },
    peakMemory: () => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8')
        memory = Math.max(memory, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024)
      } catch {
        // It has not begun, or has ended.
      }
      return memory
    },
    processorTime: () =>
      readdirSync(`/proc/${pid}/task`).reduce(
        (sum, task) =>
          sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]) / 1e6,
        0,
      ),
  }
}
