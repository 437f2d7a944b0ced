import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'
import type { z } from 'zod'
import stringWidth from 'string-width'
import { adminGroups, ungroupedAdminVerbs } from '../../cli/admin/program.ts'
import { localCommands } from '../../cli/groups.ts'
import { helpItem, helpWidth, layOutHelp } from '../../cli/help-layout.ts'
import { commandName, readManifest } from '../../cli/manifest.ts'
import { sandboxVerbs } from '../../cli/sandbox/verbs.ts'
import { findOperation, type Operation } from '../../catalog/index.ts'

import { valuePlaceholder } from '../../cli/help.ts'
import { useFakeServer } from './fake-server.ts'

const manifest = readManifest()
const fake = useFakeServer()

/** Every command that has help, as its words. */
const commands: readonly string[] = [
  '',
  ...new Set(manifest.commands.flatMap((spec) => [spec.group, commandName(spec)])),
  ...Object.keys(localCommands),
  ...adminGroups.flatMap(({ name, verbs }) => [
    `admin ${name}`,
    ...verbs.map((verb) => `admin ${name} ${verb.name}`),
  ]),
  ...ungroupedAdminVerbs.map(({ name }) => `admin ${name}`),
  ...sandboxVerbs.map(({ name }) => `sandbox ${name}`),
]

const readHelp = async (command: string, columns?: number): Promise<string> => {
  const { exit, stdout, stderr } = await fake.wcrm(
    [...command.split(' ').filter((word) => word !== ''), '--help'],
    columns === undefined ? {} : { terminal: { columns, rows: 24 } },
  )
  assert.deepEqual([exit, stderr], [0, ''], command)
  return stdout
}

/** The text without what layout adds: white space, and backslashes at the end of a line that goes on. */
const textOf = (help: string): string => help.replaceAll(' \\\n', '').replaceAll(/\s/g, '')

/** Lines that are too long, but for examples: a word of them stays whole, so that it can be copied. */
const tooLong = (help: string, width: number): string[] =>
  help
    .split('\n')
    .filter((line) => stringWidth(line) > width)
    .filter((line) => !/^ {6}\S+( \\)?$/.test(line.replaceAll(/"[^"]*"|'[^']*'/g, 'text')))

/** The words that a shell makes of each of these commands; JSON as its value. */
const readWords = (examples: readonly string[]): unknown[][] =>
  execFileSync('sh', [
    '-c',
    `wcrm() { printf '%s\\0' "$@"; }; jq() { cat; }\n${examples.join("\nprintf '\\001'\n")}`,
  ])
    .toString()
    .split('\u0001')
    .map((words) =>
      words.split('\0').map((word): unknown => {
        try {
          return JSON.parse(word)
        } catch {
          return word
        }
      }),
    )

describe('CLI: the layout of help', () => {
  it('the help of every command fits the terminal, and nothing of it is cut', async () => {
    for (const command of commands) {
      const [narrow, wide] = [await readHelp(command, 40), await readHelp(command, 120)]
      assert.deepEqual(tooLong(narrow, 40), [], command)
      assert.deepEqual(tooLong(wide, 120), [], command)
      assert.equal(textOf(narrow), textOf(wide), command)
    }
  })

  it('it is 80 columns wide without a terminal, and between 40 and 120 with one', async () => {
    const piped = await readHelp('contacts search')
    assert.deepEqual(tooLong(piped, 80), [])
    assert.equal(piped, await readHelp('contacts search', 80))
    assert.equal(await readHelp('contacts search', 20), await readHelp('contacts search', 40))
    assert.equal(await readHelp('contacts search', 300), await readHelp('contacts search', 120))
    assert.equal(helpWidth({ isTTY: true, columns: 0 }), 80)
  })

  it('what is before or after a group does not hide other commands', async () => {
    const all = await readHelp('')
    for (const words of ['--help groups list', '-h groups', '--json --help'])
      assert.equal((await fake.wcrm(words.split(' '))).stdout, all, words)
    const verbs = await readHelp('groups')
    for (const words of ['help groups', '--json groups --help', 'groups --help list'])
      assert.equal((await fake.wcrm(words.split(' '))).stdout, verbs, words)
    assert.match((await fake.wcrm(['groups', 'lst'])).stderr, /Did you mean one of list, ls\?/)
    assert.match((await fake.wcrm(['grups', 'list'])).stderr, /Did you mean groups\?/)
  })

  it('a group without a verb prints its help as wide as the terminal of standard error', async () => {
    const { stderr } = await fake.wcrm(['contacts'], { terminal: { columns: 50, rows: 24 } })
    assert.deepEqual(tooLong(stderr, 50), [])
    assert.match(stderr, /\n {2}export\n {6}Export all matching contacts in full, as CSV\n {6}or/)
  })

  it('examples are the same commands for a shell however narrow they are', async () => {
    const shown: string[] = []
    for (const spec of manifest.commands) {
      const [, examples = ''] = /\nExamples:\n([^]*?)\n\n/.exec(await readHelp(commandName(spec), 40)) ?? []
      shown.push(...examples.split(/^ {2}\$ |^ {2}#.*\n(?: {6}.*\n)*/m).filter((text) => text.trim() !== ''))
    }
    const given = manifest.commands.flatMap(({ examples }) => examples.map(({ command }) => command))
    assert.deepEqual(readWords(shown), readWords(given))
  })

  it('a flag of an example stands beside its value', async () => {
    for (const spec of manifest.commands) {
      const help = await readHelp(commandName(spec))
      assert.doesNotMatch(help, / --[\w-]+ \\\n +[^-\s'][^\n]{0,50}\n/, commandName(spec))
    }
  })

  it('wide characters take two cells, and words that are longer than a line are broken', async () => {
    const text = `${helpItem('--name <text>', '名前は必須です 👨‍👩‍👧 '.repeat(8).trim())}\n${'あ'.repeat(50)}`
    const laid = await layOutHelp(text, 40)
    assert.deepEqual(
      laid.split('\n').filter((line) => stringWidth(line) > 40),
      [],
    )
    assert.equal(textOf(laid), textOf(text))
  })
})

describe('CLI: flags that take JSON', () => {
  const jsonFields = manifest.commands.flatMap((spec) =>
    spec.fields
      .filter((field) => valuePlaceholder(field).startsWith('json'))
      .map((field) => ({ spec, field })),
  )

  it('their help shows the shape, an example that the operation takes, and where the whole schema is', async () => {
    assert.ok(jsonFields.length > 15)
    for (const { spec, field } of jsonFields) {
      const command = commandName(spec)
      const { shape, example } = field.json!
      const input = (findOperation(spec.operation) as Operation).input.shape[field.name] as z.ZodType
      assert.ok(input.safeParse(example).success, `${command} ${field.name}`)
      const help = (await readHelp(command)).replaceAll(/\s+/g, ' ')
      assert.ok(help.includes(shape) && shape.length <= 350, shape)
      const [, shown = ''] = new RegExp(`Example: ${field.flag} '(.*?)' In full:`).exec(help) ?? []
      assert.deepEqual(JSON.parse(shown), example, command)
      const [, words = ''] = / In full: wcrm (schema \S+ \S+ \S+)/.exec(help.slice(help.indexOf(shown))) ?? []
      const { exit, stdout } = await fake.wcrm(words.split(' '))
      assert.equal(exit, 0, words)
      assert.ok(stdout.startsWith(`${spec.operation} ${field.name}: `), stdout)
      assert.match(stdout, /\nExample:\n[[{]/)
    }
  })
})
