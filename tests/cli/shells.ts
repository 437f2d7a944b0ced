import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Interactive shells on terminals of their own, in which a key press shows what became of the line. */

export type ShellName = 'bash' | 'zsh' | 'fish'

const isThere = (program: string, word: string): boolean => {
  try {
    return execFileSync(program, ['--version'], { encoding: 'utf8' }).includes(word)
  } catch {
    return false
  }
}

/** Why a shell cannot be tested here; undefined where it can. */
export const whyNot = (shell: ShellName): string | undefined =>
  !isThere('script', 'util-linux')
    ? 'script of util-linux is not installed'
    : isThere(shell, shell === 'fish' ? 'fish' : shell === 'zsh' ? 'zsh' : 'GNU bash')
      ? undefined
      : `${shell} is not installed`

/** Ctrl-X Ctrl-D writes the line to a file and empties it. */
const SHOW = '\u0018\u0004'

type Setup = { readonly folder: string; readonly file: string; readonly script: string }

/** Writes what makes a shell load the script as its users do, and returns the command that starts it. */
const prepare: Readonly<Record<ShellName, (setup: Setup) => string>> = {
  bash: ({ folder, file, script }) => {
    writeFileSync(
      join(folder, 'rc.bash'),
      `PS1='ready> '; set +o history; . '${script}'
bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
show() { printf '%s\\0' "$READLINE_LINE" >> '${file}'; READLINE_LINE=; }
bind -x '"\\C-x\\C-d": show'
`,
    )
    return `bash --noprofile --rcfile '${folder}/rc.bash' -i`
  },
  zsh: ({ folder, file, script }) => {
    const functions = join(folder, 'functions')
    mkdirSync(functions, { recursive: true })
    // Loaded at the first Tab, as from a folder of functions.
    writeFileSync(join(functions, '_wcrm'), readFileSync(script))
    writeFileSync(
      join(folder, '.zshrc'),
      `PS1='ready> '; fpath=('${functions}' $fpath); autoload -Uz compinit; compinit -u -d '${folder}/dump'
show() { print -rN -- "$BUFFER" >> '${file}'; BUFFER= }
zle -N show; bindkey '^X^D' show
`,
    )
    return `env ZDOTDIR='${folder}' zsh -i`
  },
  fish: ({ folder, file, script }) => {
    const config = join(folder, 'fish')
    mkdirSync(join(config, 'completions'), { recursive: true })
    writeFileSync(join(config, 'completions', 'wcrm.fish'), readFileSync(script))
    writeFileSync(
      join(config, 'config.fish'),
      `function fish_prompt; echo 'ready> '; end; set -g fish_greeting
function show; printf '%s\\0' (commandline | string collect) >> '${file}'; commandline ''; end
bind \\cx\\cd show
`,
    )
    return 'fish -i'
  },
}

export type TestShell = {
  /** Types a text, in which a tab completes, and returns the line that it makes. */
  readonly type: (text: string) => Promise<string>
  /** All that the terminal got so far. */
  readonly printed: () => string
  readonly close: () => Promise<void>
}

const WAIT_MS = 20_000

/** Starts a shell with a completion script, in a folder of its own. */
export const openShell = async (
  shell: ShellName,
  folder: string,
  script: string,
  env: Readonly<Record<string, string>>,
): Promise<TestShell> => {
  const file = join(folder, 'lines')
  const command = prepare[shell]({ folder, file, script })
  const child = spawn('script', ['-qfec', command, '/dev/null'], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { TERM: 'xterm', LC_ALL: 'C.UTF-8', HOME: folder, XDG_CONFIG_HOME: folder, ...env },
  })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const lines = (): string[] => (existsSync(file) ? readFileSync(file, 'utf8').split('\0').slice(0, -1) : [])
  const until = async (isDone: () => boolean, what: string): Promise<void> => {
    const end = performance.now() + WAIT_MS
    while (!isDone()) {
      if (performance.now() > end || child.exitCode !== null)
        throw new Error(`${shell} did not ${what}: ${JSON.stringify(printed.slice(-2000))}`)
      await sleep(10)
    }
  }
  // The prompt is drawn once the shell reads keys itself.
  await until(() => printed.includes('ready> '), 'start')
  return {
    type: async (text) => {
      const before = lines().length
      child.stdin.write(text + SHOW)
      await until(() => lines().length > before, `show the line after ${JSON.stringify(text)}`)
      return lines().at(-1)!
    },
    printed: () => printed,
    close: async () => {
      child.stdin.end('exit\n')
      setTimeout(() => child.kill('SIGKILL'), 3000).unref()
      await ended
      rmSync(file, { force: true })
    },
  }
}
