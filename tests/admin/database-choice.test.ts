import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { after, describe, it } from 'node:test'
import { adminGroups, ungroupedAdminVerbs } from '../../cli/admin/program.ts'
import type { AdminVerb } from '../../cli/admin/verb.ts'
import { runCommandLine } from '../../cli/main.ts'
import { collectOutput } from '../cli/output-streams.ts'
import { createDatabase, createEmptyDatabase, databases } from '../databases.ts'

const home = mkdtempSync(join(tmpdir(), 'wcrm-choice-'))
after(() => rmSync(home, { recursive: true, force: true }))

const run = async (argv: readonly string[], env: Record<string, string> = {}) => {
  const [stdout, stderr] = [collectOutput(), collectOutput()]
  const exit = await runCommandLine([...argv], {
    stdin: new PassThrough(),
    stdout: stdout.stream,
    stderr: stderr.stream,
    env: { HOME: home, ...env },
  })
  return { exit, out: stdout.text(), err: stderr.text() }
}

/** Values that the flags of some commands need. */
const flagValues: Record<string, string> = {
  '--role': 'agent',
  '--type': 'web',
  '--staff': '1',
  '--scopes': 'all',
  '--to': 'postgres://nowhere.invalid/none',
  '--resolution': '8h',
}

/** A valid call of a command. */
const toArgv = (group: string | undefined, { name, argument, required = [], options = [] }: AdminVerb) => [
  'admin',
  ...(group ? [group] : []),
  ...name.split(' '),
  ...(argument ? [argument[0] === '<file>' ? join(home, `${name}.gz`) : '1'] : []),
  ...required.flatMap(([flags]) => {
    const flag = flags.split(' ')[0]!
    return [flag, flagValues[flag] ?? 'Name']
  }),
  ...(name === 'update' && options.some(([flags]) => flags.startsWith('--name')) && required.length === 0
    ? ['--name', 'Name']
    : []),
]

const commands = [
  ...adminGroups.flatMap((group) => group.verbs.map((verb) => ({ verb, argv: toArgv(group.name, verb) }))),
  ...ungroupedAdminVerbs
    .filter(({ access }) => access !== 'none')
    .map((verb) => ({ verb, argv: toArgv(undefined, verb) })),
]

describe('The database of a command', () => {
  it('is never created by an admin command but those that begin one', async () => {
    for (const { verb, argv } of commands.filter(({ verb }) => verb.access !== 'create')) {
      const folder = join(home, 'missing')
      const { exit, out, err } = await run([...argv, '--data', folder])
      assert.ok(exit === 2 || exit === 3, `${argv.join(' ')}: ${exit} ${err}`)
      assert.equal(out, '', argv.join(' '))
      assert.match(err, /no database in the folder|no file .*\/secret/, argv.join(' '))
      assert.ok(!existsSync(folder), argv.join(' '))
      assert.ok(!verb.argument || !existsSync(join(home, `${verb.name}.gz`)))
    }
  })

  it('is created by no command whose name says that it reads', () => {
    const reading = /^(list|show|status|backup|doctor|check|retention)$/
    for (const { verb, argv } of commands)
      // `media move` changes files, and reads the database.
      assert.equal(verb.access === 'read', reading.test(verb.name) || argv[1] === 'media', argv.join(' '))
  })

  it('is in an empty folder no more than in a missing one', async () => {
    const folder = mkdtempSync(join(home, 'empty-'))
    const { exit, err } = await run(['admin', 'backup', join(home, 'x.gz'), '--data', folder])
    assert.deepEqual([exit, readdirSync(folder)], [3, []], err)
  })

  for (const database of databases) {
    it(`is not migrated by a command that reads (${database})`, async () => {
      const { flags, remove } = await createEmptyDatabase(database)
      const list = () => run(['admin', 'workspaces', 'list', ...flags.slice(0, 2)])
      try {
        const { exit, err } = await list()
        assert.equal(exit, 3, err)
        assert.match(err, /has no tables of wcrm/)
        // It would have been made.
        assert.equal((await list()).exit, 3)
      } finally {
        await remove()
      }
    })
  }

  it('must not be named twice: a folder by a flag, PostgreSQL by a variable', async () => {
    const { flags, remove } = await createDatabase('embedded')
    const env = { WCRM_DATABASE_URL: 'postgres://somebody:hidden@db.example/crm' }
    try {
      for (const words of [...commands.map(({ argv }) => argv), ['serve'], ['worker']]) {
        const { exit, err } = await run([...words, ...flags], env)
        assert.equal(exit, 2, `${words.join(' ')}: ${err}`)
        assert.match(err, /--data .*WCRM_DATABASE_URL .*unset WCRM_DATABASE_URL/s, words.join(' '))
        assert.doesNotMatch(err, /hidden/)
      }
      const { exit } = await run(['admin', 'workspaces', 'list', ...flags], { WCRM_DATABASE_URL: '' })
      assert.equal(exit, 0)
    } finally {
      await remove()
    }
  })

  it('is PostgreSQL by its flag, beside the folder of its secret', async () => {
    writeFileSync(join(home, 'unused'), '')
    const { exit, err } = await run(
      ['admin', 'workspaces', 'list', '--database-url', 'postgres://127.0.0.1:1/none'],
      { WCRM_DATA: join(home, 'secret-folder') },
    )
    assert.deepEqual([exit, /Cannot connect to the database/.test(err)], [1, true], err)
  })
})
