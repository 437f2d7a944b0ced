import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { measure } from '../../cli/table.ts'
import { commandName, readManifest } from '../../cli/manifest.ts'
import { runs } from '../level.ts'
import { drawScreens, isConfirmed, type Recording, recordScreens } from './screens/recording.ts'
import { showScreen } from './screens/screen.ts'
import { asInTmux, drawInTmux, hasTmux } from './screens/tmux.ts'

// Every command as a terminal of 80 columns shows it, compared with files: `npm run record-screens` writes them.

const isRecorded = process.env['WCRM_RECORD_SCREENS'] !== undefined

/** Of the soak. Narrower ones are not promised: values and columns that are asked for keep a width of their own. */
const SIZES = [
  [80, 24],
  [120, 40],
] as const

/** Commands that have no screen: what they print is a file. */
const WITHOUT_SCREEN = ['contacts export']

type Screen = { readonly group: string; readonly words: readonly string[]; readonly lines: readonly string[] }

/** What differs from run to run: a duration, and digests with a random salt. */
const hideChanging = (line: string): string =>
  line.replace(/^latency  .*/, 'latency         1 ms').replaceAll(/\b([a-z_]+):[\w-]{10}(?=\.|$)/g, '$1:…')

const toScreens = ({ commands }: Recording, written: readonly string[]): Screen[] =>
  commands.map(({ group, words }, n) => ({
    group,
    words,
    lines: showScreen(written[n] ?? '').map(hideChanging),
  }))

const quote = (word: string): string =>
  /^[\w.,@/:=+-]+$/.test(word) ? word : `'${word.length > 400 ? `${word.slice(0, 20)}…` : word}'`

const describeScreen = ({ words, lines }: Screen): string =>
  `$ wcrm ${words.map(quote).join(' ')}\n${lines.map((line) => `${line}\n`).join('')}`

const groupScreens = (screens: readonly Screen[]): Map<string, string> => {
  const texts = new Map<string, string[]>()
  for (const screen of screens)
    texts.set(screen.group, [...(texts.get(screen.group) ?? []), describeScreen(screen)])
  return new Map([...texts].map(([group, parts]) => [group, parts.join('\n')]))
}

/** Ids and links are copied: one that is wider than the terminal is left to it to break. */
const isUncut = (line: string): boolean => /^\s*(?:--cursor )?\S+$/.test(line)

const assertFits = (screens: readonly Screen[], columns: number): void => {
  const bounded = screens.filter(({ words }) => !words.includes('--wide'))
  assert.ok(bounded.length > 100)
  for (const { words, lines } of bounded)
    for (const line of lines)
      assert.ok(measure(line) <= columns || isUncut(line), `${words.join(' ')}: ${line}`)
}

describe('CLI: screens', () => {
  let recording: Recording
  before(async () => {
    recording = await recordScreens()
  })

  it('every command has a screen', () => {
    const drawn = recording.commands.map(({ words }) => words.slice(0, 2).join(' '))
    const missing = readManifest()
      .commands.map(commandName)
      .filter((name) => !WITHOUT_SCREEN.includes(name) && !drawn.includes(name))
    assert.deepEqual(missing, [])
  })

  it('80 columns: as in the files', async () => {
    const folder = join(import.meta.dirname, 'screens', 'recorded')
    const screens = toScreens(recording, await drawScreens(recording, [80, 24]))
    assertFits(screens, 80)
    const texts = groupScreens(screens)
    if (isRecorded) {
      rmSync(folder, { recursive: true, force: true })
      mkdirSync(folder, { recursive: true })
      for (const [group, text] of texts) writeFileSync(join(folder, `${group}.txt`), text)
    }
    for (const [group, text] of texts) {
      const file = join(folder, `${group}.txt`)
      const expected = existsSync(file) ? readFileSync(file, 'utf8') : ''
      const [lines, known] = [text.split('\n'), expected.split('\n')]
      const at = lines.findIndex((line, n) => line !== known[n])
      const differing = `line ${at + 1} of ${file} (npm run record-screens):\n${known[at]}\n${lines[at]}`
      assert.ok(text === expected, differing)
    }
  })

  for (const size of runs(0, 1) > 0 ? SIZES : [])
    it(
      `${size.join('×')}: nothing wider, ids whole, and tmux shows the same`,
      { skip: !hasTmux() },
      async () => {
        const written = await drawScreens(recording, size)
        assertFits(toScreens(recording, written), size[0])
        const isShown = (n: number): boolean => {
          const command = recording.commands[n]!
          return !isConfirmed(command) && !command.words.includes('--wide')
        }
        const shown = { ...recording, commands: recording.commands.filter((_, n) => isShown(n)) }
        const expected = asInTmux(written.filter((_, n) => isShown(n)).flatMap(showScreen))
        const { lines, rows } = await drawInTmux(shown, size)
        assert.deepEqual(lines, expected)
        const wide = expected.filter((line) => measure(line) > size[0])
        const broken = wide.reduce((sum, line) => sum + Math.ceil(measure(line) / size[0]) - 1, 0)
        assert.equal(rows, expected.length + broken)
      },
    )
})
