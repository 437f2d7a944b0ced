import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Recording } from './recording.ts'

const run = promisify(execFile)

export const hasTmux = (): boolean => spawnSync('tmux', ['-V']).status === 0

/** tmux keeps at most 21 bytes of a character: a family loses its last member, in no more or fewer cells. */
const FAMILY = /👨‍👩‍👧‍?👦?/gu

/** Texts that look the same in tmux. */
export const asInTmux = (lines: readonly string[]): string[] =>
  lines
    .map((line) =>
      line
        .replaceAll(FAMILY, '👪')
        .replace(/^latency  .*/, 'latency')
        .normalize('NFC')
        .trimEnd(),
    )
    .filter((line) => line !== '')

/** Draws the recorded commands in a pane of this size. Returns its lines; tmux joins those that it had to break. */
export const drawInTmux = async (
  recording: Recording,
  [columns, rows]: readonly [number, number],
): Promise<{ lines: string[]; rows: number }> => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-tmux-'))
  const file = join(folder, 'recording.json')
  const socket = join(folder, 'socket')
  const env = { ...process.env, LANG: 'C.UTF-8', TERM: 'xterm-256color' }
  const tmux = async (...words: string[]): Promise<string> =>
    (await run('tmux', ['-S', socket, '-f', '/dev/null', ...words], { env, maxBuffer: 1 << 26 })).stdout
  try {
    writeFileSync(file, JSON.stringify(recording))
    const draw = fileURLToPath(new URL('./draw.ts', import.meta.url))
    const pane = `'${process.execPath}' '${draw}' '${file}'; tmux -S '${socket}' wait-for -S drawn; sleep 60`
    const size = ['-x', String(columns), '-y', String(rows)]
    const limit = ['start-server', ';', 'set', '-g', 'history-limit', '50000', ';']
    await tmux(...limit, 'new-session', '-d', ...size, pane)
    await tmux('wait-for', 'drawn')
    const capture = ['capture-pane', '-p', '-S', '-']
    const [joined, broken] = [await tmux(...capture, '-J'), await tmux(...capture)]
    return { lines: asInTmux(joined.split('\n')), rows: asInTmux(broken.split('\n')).length }
  } finally {
    await tmux('kill-server').catch(() => '')
    rmSync(folder, { recursive: true, force: true })
  }
}
