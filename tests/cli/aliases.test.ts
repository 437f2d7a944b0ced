import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findOperation } from '../../catalog/index.ts'
import { adminGroups } from '../../cli/admin/program.ts'
import { aliasesOf } from '../../cli/aliases.ts'
import { toArgv } from '../../cli/argv.ts'
import { commandName, readManifest } from '../../cli/manifest.ts'
import { createCompleter } from './completer.ts'
import { useFakeServer } from './fake-server.ts'

const manifest = readManifest()
const fake = useFakeServer()
const { complete } = createCompleter(fake)

const groups = Map.groupBy(
  manifest.commands.filter(({ verb }) => verb !== ''),
  ({ group }) => group,
)

describe('CLI: aliases of verbs', () => {
  it('every group has them for the verbs that have one, and no word means two commands', () => {
    for (const [group, specs] of groups) {
      const names = specs.flatMap(({ verb, aliases = [] }) => [verb, ...aliases])
      assert.equal(new Set(names).size, names.length, group)
      for (const [verb, alias] of [
        ['list', 'ls'],
        ['get', 'show'],
        ['delete', 'rm'],
      ] as const)
        for (const spec of specs.filter((each) => each.verb === verb))
          assert.ok(spec.aliases?.includes(alias), commandName(spec))
    }
    const aliasesIn = (group: string) =>
      groups.get(group)!.flatMap(({ verb, aliases = [] }) => aliases.map((alias) => `${alias}=${verb}`))
    assert.deepEqual(aliasesIn('contacts'), [
      'list=search',
      'ls=search',
      'show=get',
      'create=upsert',
      'rm=delete',
    ])
    assert.deepEqual(aliasesIn('templates'), ['ls=list', 'show=get'])
    assert.deepEqual(aliasesIn('reports'), [])
  })

  it('a verb keeps its name where it could be the alias of another', () => {
    assert.deepEqual(aliasesOf('search', ['list', 'search']), [])
    assert.deepEqual(aliasesOf('upsert', ['create', 'upsert']), [])
    assert.deepEqual(aliasesOf('remove', ['delete', 'remove']), [])
    assert.deepEqual(aliasesOf('list', ['list', 'ls']), [])
  })

  it('an alias is the same command: call, help and schema', async () => {
    for (const spec of manifest.commands) {
      const { operation, verb, group, aliases = [] } = spec
      const op = findOperation(operation)!
      const words = [...toArgv(spec, op.examples[0]!.input), ...(op.confirm ? ['--confirm', op.confirm] : [])]
      for (const alias of aliases) {
        fake.responses = [{ body: op.examples[0]!.output }]
        fake.requests.length = 0
        const { exit, stderr } = await fake.wcrm([group, alias, ...words.slice(2), '--json'])
        assert.equal(exit, 0, stderr)
        assert.deepEqual(
          fake.requests.map(({ path, input }) => [path, input]),
          [[`/v1/ops/${operation}`, op.examples[0]!.input]],
        )
        const help = await fake.wcrm([group, alias, '--help'])
        assert.equal(help.stdout, (await fake.wcrm([group, verb, '--help'])).stdout)
        assert.ok(help.stdout.includes(`wcrm ${group} ${alias}`))
        const schema = await fake.wcrm(['schema', group, alias])
        assert.ok(schema.stdout.startsWith(`${operation} `), schema.stderr)
      }
    }
  })

  it('the help of a group names them in one line', async () => {
    const { stdout } = await fake.wcrm(['contacts', '--help'])
    assert.match(
      stdout,
      /\n\nAliases: list and ls \(search\), show \(get\), create \(upsert\), rm \(delete\)\.\n$/,
    )
    assert.doesNotMatch((await fake.wcrm(['reports', '--help'])).stdout, /Aliases/)
  })

  it('suggestions for a misspelt verb know them', async () => {
    for (const [words, meant] of [
      [['contacts', 'crate'], 'create'],
      [['contacts', 'lst'], 'list'],
      [['webhooks', 'sow'], 'show'],
      [['groups', 'rmm'], 'rm'],
      [['tags', 'lss'], 'ls'],
    ] as const) {
      const { exit, stderr } = await fake.wcrm([...words])
      assert.equal(exit, 2)
      assert.match(stderr, new RegExp(`Did you mean ${meant}\\?`), words.join(' '))
    }
  })

  it('completion offers them once they are begun, and knows their flags', async () => {
    assert.ok(!(await complete(['contacts', ''])).words.includes('ls'))
    assert.deepEqual((await complete(['contacts', 'l'])).words.toSorted(), ['list', 'ls'])
    assert.deepEqual((await complete(['contacts', 'rm', '--conf'])).words, ['--confirm'])
    assert.deepEqual((await complete(['admin', 'keys', 'l'])).words.toSorted(), ['list', 'ls'])
    assert.ok((await complete(['admin', 'keys', 'ls', '--'])).words.includes('--database-url'))
  })

  it('groups of admin have them too', async () => {
    for (const { name, verbs } of adminGroups)
      for (const verb of verbs)
        for (const alias of aliasesOf(
          verb.name,
          verbs.map((each) => each.name),
        ))
          assert.equal(
            (await fake.wcrm(['admin', name, alias, '--help'])).stdout,
            (await fake.wcrm(['admin', name, verb.name, '--help'])).stdout,
          )
  })
})
