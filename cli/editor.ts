import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cliError, usageError } from './error.ts'
import type { Io } from './io.ts'

const SCISSORS = '------------------------ >8 ------------------------'

/**
 * Starts a process that deletes a folder when this one ends, even when it is killed: its standard input is closed then.
 * Returns a function that deletes the folder now.
 */
const deleteAtEnd = (folder: string): (() => void) => {
  const guard =
    process.platform === 'win32'
      ? undefined
      : spawn('sh', ['-c', 'read -r _; rm -rf -- "$1"', 'sh', folder], {
          stdio: ['pipe', 'ignore', 'ignore'],
          detached: true,
        })
  guard?.on('error', () => {})
  guard?.unref()
  return () => {
    rmSync(folder, { recursive: true, force: true })
    guard?.stdin?.destroy()
  }
}

const runEditor = async (io: Io, path: string): Promise<void> => {
  const editor = io.env['VISUAL'] || io.env['EDITOR'] || (process.platform === 'win32' ? 'notepad' : 'vi')
  // As git does: the variable may hold a command with arguments.
  const child =
    process.platform === 'win32'
      ? spawn(editor, [path], { stdio: 'inherit', shell: true })
      : spawn('sh', ['-c', `${editor} "$@"`, editor, path], { stdio: 'inherit' })
  const ended: Promise<unknown[]> = once(child, 'exit')
  const [code] = await ended.catch(() => [127])
  if (code !== 0)
    throw usageError(
      `The editor "${editor}" ended with ${code === null ? 'a signal' : `exit code ${String(code)}`}. ` +
        'Nothing was sent.',
      '--text',
      'Set EDITOR, or give the text with --text.',
    )
}

/**
 * Lets the user write a text in their editor (`VISUAL`, `EDITOR`, else vi). The file can be read by nobody else and is
 * deleted however the command ends. Throws when the text is empty.
 */
export const writeInEditor = async (io: Io, purpose: string): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-text-'))
  const remove = deleteAtEnd(folder)
  try {
    const path = join(folder, 'text.txt')
    writeFileSync(
      path,
      `\n${SCISSORS}\n${purpose}\nWrite the text above this line. An empty text sends nothing.\n`,
      {
        mode: 0o600,
      },
    )
    await runEditor(io, path)
    const text = readFileSync(path, 'utf8').split(SCISSORS)[0]!.trim()
    if (text !== '') return text
  } finally {
    remove()
  }
  throw cliError(6, {
    type: 'about:blank',
    title: 'No text',
    code: 'confirm_required',
    detail: 'The text is empty. Nothing was sent.',
  })
}
