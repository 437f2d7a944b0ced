import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { eventTypes } from '../../catalog/events.ts'
import { adminGroups, ungroupedAdminVerbs } from '../../cli/admin/program.ts'
import { isLookup, nodeOf } from '../../cli/completion/tree.ts'
import { localCommands } from '../../cli/groups.ts'
import { commandName, readManifest } from '../../cli/manifest.ts'
import { listJsonFields } from '../../cli/output.ts'
import { sandboxVerbs } from '../../cli/sandbox/verbs.ts'
import { renderCompletions } from '../../scripts/completions.ts'
import { createCompleter, page } from './completer.ts'
import { problemBody, useFakeServer } from './fake-server.ts'

const manifest = readManifest()
const fake = useFakeServer()

const { complete, forget, age, cacheFiles } = createCompleter(fake)

/** The names of flags that help shows, short ones left out. */
const listHelpFlags = (help: string): string[] => [
  ...new Set(
    [...help.matchAll(/^ {2}(?:-\w, )?(--[\w[\]-]+)/gm)].map(([, flag]) => flag!.replace('[no-]', '')),
  ),
]

/** Every command without those that have commands of their own. */
const allCommands: readonly string[][] = [
  ...manifest.commands.map((spec) => commandName(spec).split(' ')),
  ...Object.keys(localCommands)
    .filter((name) => !['admin', 'sandbox', 'inbox', 'mcp', 'ops'].includes(name))
    .map((name) => [name]),
  ...adminGroups.flatMap(({ name, verbs }) => verbs.map((verb) => ['admin', name, verb.name])),
  ...ungroupedAdminVerbs.map((verb) => ['admin', ...verb.name.split(' ')]),
  ...sandboxVerbs.map(({ name }) => ['sandbox', ...name.split(' ')]),
]

describe('Completion: every command', () => {
  it('cli/completions.json is up to date (npm run generate)', () => {
    assert.equal(readFileSync('cli/completions.json', 'utf8'), renderCompletions())
  })

  it('offers every flag that the help of each command shows, and no other', async () => {
    for (const command of allCommands) {
      const { stdout } = await fake.wcrm([...command, '--help'])
      const shown = listHelpFlags(stdout)
      assert.ok(shown.length > 0, command.join(' '))
      const offered = new Set((await complete([...command, '--'])).words)
      // Those of the command line itself stand in the help of `wcrm` alone.
      const own = ['--help', '--profile']
      assert.deepEqual(
        [...offered].filter((flag) => !own.includes(flag)).toSorted(),
        shown.filter((flag) => !own.includes(flag)).toSorted(),
        command.join(' '),
      )
      assert.ok(offered.has('--help'), command.join(' '))
    }
  })

  it('offers every group, verb and local command', async () => {
    const root = (await complete([''])).words
    for (const [first = '', ...verbs] of allCommands) {
      assert.ok(root.includes(first), first)
      for (const [i, verb] of verbs.entries()) {
        const { words } = await complete([first, ...verbs.slice(0, i), ''])
        assert.ok(words.includes(verb), `${first} ${verbs.join(' ')}`)
      }
    }
    for (const name of Object.keys(localCommands)) assert.ok(root.includes(name), name)
    assert.deepEqual((await complete(['help', 'contacts', 'unt'])).words, ['untag'])
    for (const name of ['inbox', 'mcp'])
      for (const [flag] of (await fake.wcrm([name, '--help'])).stdout.matchAll(/(?<=\[)--[\w-]+/g))
        assert.ok((await complete([name, '--'])).words.includes(flag), `${name} ${flag}`)
  })

  it('offers the choices of a flag, behind a space and behind =', async () => {
    for (const spec of manifest.commands)
      for (const field of spec.fields.filter((each) => each.enum && !spec.args.includes(each.name))) {
        const command = commandName(spec).split(' ')
        assert.deepEqual((await complete([...command, field.flag, ''])).words, field.enum)
        assert.deepEqual(
          (await complete([...command, `${field.flag}=`])).words,
          field.enum!.map((word) => `${field.flag}=${word}`),
        )
      }
    assert.deepEqual((await complete(['contacts', 'search', '--starred=t'])).words, ['--starred=true'])
    assert.deepEqual((await complete(['contacts', 'search', '--no-st'])).words, ['--no-starred'])
    assert.deepEqual((await complete(['groups', 'delete', '3', '--confirm', ''])).words, ['delete'])
    assert.deepEqual((await complete(['admin', 'staff', 'create', '--role', 'a'])).words, ['admin', 'agent'])
    assert.deepEqual((await complete(['sandbox', 'fault', 'add', '--on=m'])).words, [
      '--on=messages',
      '--on=media',
    ])
    assert.deepEqual((await complete(['api', 'p'])).words, ['POST', 'PUT', 'PATCH'])
    assert.deepEqual((await complete(['api', 'GET', '/v1/cus'])).words, [
      '/v1/custom-fields',
      '/v1/custom-fields/',
    ])
  })

  it('offers the fields of --json= and --columns, one after the other', async () => {
    for (const spec of manifest.commands.filter(({ verb }) => verb !== 'export')) {
      const { how, words } = await complete([...commandName(spec).split(' '), '--json='])
      assert.deepEqual(
        words,
        listJsonFields(spec).map((name) => `--json=${name}`),
      )
      if (words.length > 0) assert.match(how, /open/)
    }
    assert.deepEqual((await complete(['events', 'list', '--json=id,type,occ'])).words, [
      '--json=id,type,occurred_at',
    ])
    assert.deepEqual((await complete(['events', 'list', '--columns', 'id,i'])).words, [])
    assert.deepEqual((await complete(['tags', 'list', '--columns', 'id,n'])).words, ['id,name'])
  })

  it('offers operations, events, profiles and files', async () => {
    assert.deepEqual((await complete(['ops', 'crm_untag'])).words, ['crm_untag_contacts'])
    assert.deepEqual((await complete(['ops', 'crm_untag_contacts', '--tag'])).words, ['--tags'])
    assert.deepEqual((await complete(['schema', 'crm_get_contact', 'c'])).words, ['contact_id'])
    for (const words of [
      ['trigger', ''],
      ['listen', '--events', ''],
      ['events', 'list', '--types', ''],
    ])
      assert.deepEqual((await complete(words)).words, Object.keys(eventTypes).toSorted())
    assert.deepEqual(
      (await complete(['listen', '--events', 'contact.created/1,group.created/1,nothing.'])).words,
      [],
    )
    for (const words of [['-p', 'd'], ['--profile=d'], ['switch', 'd'], ['whoami', '--profile', 'd']])
      assert.deepEqual((await complete(words, { XDG_CONFIG_HOME: storeProfiles() })).words, [
        words.at(-1)!.replace(/d$/, 'demo-2'),
      ])
    for (const [words, how] of [
      [['diff', 'x'], 'files closed 0'],
      [['apply', ''], 'files closed 0'],
      [['contacts', 'import', 'p'], 'files closed 0'],
      [['groups', 'delete', '3', '--plan=x'], 'files closed 7'],
      [['conversations', 'note', '7', '--text', '@n'], 'files closed 1'],
      [['contacts', 'tag', '--contact-ids=@n'], 'files closed 15'],
      [['serve', '--data', ''], 'folders closed 0'],
      [['admin', 'restore', ''], 'files closed 0'],
    ] as [string[], string][])
      assert.equal((await complete(words)).how, how, words.join(' '))
  })
})

const storeProfiles = (url = 'http://127.0.0.1:9'): string => {
  const folder = join(fake.home, 'profiles')
  mkdirSync(join(folder, 'wcrm'), { recursive: true })
  const profile = (name: string) => ({ url, store: 'file', account: name, key: `wc_live_${name}` })
  writeFileSync(
    join(folder, 'wcrm', 'credentials.json'),
    JSON.stringify({ default: 'prod', profiles: { prod: profile('prod'), 'demo-2': profile('demo-2') } }),
    { mode: 0o600 },
  )
  return folder
}

describe('Completion: names of the server', () => {
  const groups = page([
    { id: '3', name: 'VIP' },
    { id: '4', name: 'Großkunden ☕' },
  ])

  it('are asked with the key, kept for its owner alone, and asked once', async () => {
    forget()
    fake.responses = [groups]
    assert.deepEqual((await complete(['groups', 'delete', ''])).words, ['VIP', 'Großkunden ☕'])
    assert.deepEqual((await complete(['contacts', 'search', '--group=gro'])).words, ['--group=Großkunden ☕'])
    assert.deepEqual((await complete(['contacts', 'search', '--group', 'VIP,'])).words, ['VIP,Großkunden ☕'])
    assert.deepEqual((await complete(['groups', 'delete', '4'])).words, ['4'])
    assert.equal(fake.requests.length, 1)
    assert.equal(fake.requests[0]!.path, '/v1/ops/crm_list_groups')
    assert.equal(fake.requests[0]!.headers.authorization, 'Bearer wc_test_key')
    for (const file of cacheFiles()) assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.doesNotMatch(
      cacheFiles()
        .map((file) => file + readFileSync(file, 'utf8'))
        .join(),
      /wc_test_key/,
    )
  })

  it('of another key are asked anew, and a key that is refused sees nothing, also of what it saw', async () => {
    fake.responses = [page([{ id: '9', name: 'Other' }])]
    assert.deepEqual((await complete(['groups', 'delete', ''], { WCRM_API_KEY: 'wc_test_b' })).words, [
      'Other',
    ])
    age()
    fake.responses = [{ status: 403, body: problemBody('forbidden') }]
    assert.deepEqual((await complete(['groups', 'delete', ''])).words, [])
    fake.responses = [{ status: 503, body: problemBody('internal_error') }]
    assert.deepEqual((await complete(['groups', 'delete', ''])).words, [])
    assert.deepEqual((await complete(['groups', 'delete', ''], { WCRM_API_KEY: 'wc_test_b' })).words, [
      'Other',
    ])
  })

  it('that no word can stand for are ids: control characters, commas in lists, twins, digits', async () => {
    forget()
    const names = [
      'new\nline',
      '\u001b[31mred',
      'a\u202eb',
      'Twin',
      ' twin ',
      '12',
      '@me',
      '-x',
      'a,b',
      'null',
    ]
    fake.responses = [page(names.map((name, i) => ({ id: String(i + 101), name })))]
    const one = await complete(['saved-filters', 'get', ''])
    assert.deepEqual(one.words, ['101', '102', '103', '104', '105', '106', '107', '108', 'a,b', '110'])
    for (const about of one.abouts) assert.doesNotMatch(about ?? '', /[\p{Cc}\u202e]/u)
    forget()
    assert.deepEqual((await complete(['contacts', 'search', '--tag=-'])).words, ['--tag=-x'])
    assert.deepEqual((await complete(['contacts', 'search', '--tag=a'])).words, [])
  })

  it('of a long list are searched for', async () => {
    forget()
    fake.responses = [page([{ id: '1', name: 'Anna' }], 'more'), page([{ id: '2', name: 'Zoë' }])]
    assert.deepEqual((await complete(['conversations', 'assign', '7', '--staff', 'zo'])).words, ['Zoë'])
    assert.deepEqual(
      fake.requests.map(({ input }) => input),
      [{ limit: 100 }, { limit: 100, search: 'zo' }],
    )
    fake.responses = [page([{ id: '3', name: 'Bo' }])]
    assert.deepEqual((await complete(['conversations', 'assign', '7', '--staff', 'b'])).words, ['Bo'])
    assert.deepEqual((await complete(['conversations', 'assign', '7', '--staff', '@'])).words, ['@me'])
  })

  it('are those of the key of the profile on the line', async () => {
    forget()
    fake.responses = [groups]
    const env = { XDG_CONFIG_HOME: storeProfiles(fake.url) }
    assert.deepEqual((await complete(['-p', 'demo-2', 'groups', 'delete', ''], env)).words.length, 2)
    assert.deepEqual((await complete(['groups', 'delete', '-p', 'x', ''], env)).words, [])
    assert.deepEqual(
      fake.requests.map(({ headers }) => headers.authorization),
      ['Bearer wc_live_demo-2'],
    )
  })

  it('come from lists that have them, with the fields that tell them apart', () => {
    const lookups = manifest.commands.flatMap((spec) => {
      const { args = [], flags = {} } = nodeOf(spec)
      return [...args, ...Object.values(flags)].map(({ kind }) => kind).filter(isLookup)
    })
    assert.ok(new Set(lookups.map(({ operation }) => operation)).size >= 12)
    for (const { operation, by, beside, search } of lookups) {
      const { fields, output } = manifest.commands.find((spec) => spec.operation === operation)!
      const columns = output.fields.map(({ name }) => name)
      for (const name of ['id', ...by, ...(beside ? [beside.split('.')[0]!] : [])])
        assert.ok(columns.includes(name), `${operation} ${name}`)
      for (const name of ['limit', ...(search ? [search] : [])])
        assert.ok(
          fields.some((field) => field.name === name),
          `${operation} ${name}`,
        )
    }
  })

  it('without a key, and with a file of keys that is broken, are none', async () => {
    fake.requests.length = 0
    const folder = join(fake.home, 'broken')
    mkdirSync(join(folder, 'wcrm'), { recursive: true })
    writeFileSync(join(folder, 'wcrm', 'credentials.json'), '{"key":')
    for (const env of [{ XDG_CONFIG_HOME: '/nonexistent' }, { XDG_CONFIG_HOME: folder }])
      assert.deepEqual((await complete(['groups', 'delete', ''], { ...env, WCRM_API_KEY: '' })).words, [])
    assert.equal(fake.requests.length, 0)
  })
})
