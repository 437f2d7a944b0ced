import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { catalog } from '../../catalog/index.ts'
import { toArgv } from '../../cli/argv.ts'
import { commandName, readCommandIndex, readManifest } from '../../cli/manifest.ts'
import { renderManifest } from '../../scripts/manifest.ts'
import { useFakeServer } from './fake-server.ts'

const manifest = readManifest()
const findCommand = (name: string) => manifest.commands.find((command) => commandName(command) === name)!
const fake = useFakeServer()

describe('CLI: generated files', () => {
  it('cli/manifest.json is up to date with the catalog (node scripts/manifest.ts)', () => {
    assert.equal(readFileSync('cli/manifest.json', 'utf8'), renderManifest())
  })

  it('every operation has exactly one command', () => {
    for (const op of catalog)
      assert.ok(
        manifest.commands.some((command) => command.operation === op.name && commandName(command) === op.cli),
        op.name,
      )
    assert.equal(new Set(manifest.commands.map(commandName)).size, manifest.commands.length)
  })

  it('the index has all commands as they are in the manifest', () => {
    const { version, entries } = readCommandIndex()
    assert.deepEqual({ version, commands: entries.map(({ read }) => read()) }, manifest)
    assert.deepEqual(
      entries.map(({ group, verb, summary }) => [group, verb, summary]),
      manifest.commands.map(({ group, verb, summary }) => [group, verb, summary]),
    )
  })
})

describe('CLI: arguments and input', () => {
  for (const op of catalog) {
    it(`${op.cli}: every example reaches the server unchanged`, async () => {
      const spec = findCommand(op.cli)
      for (const example of op.examples) {
        const input = example.input as Record<string, unknown>
        fake.responses = [{ body: example.output }]
        fake.requests.length = 0
        const { exit, stdout, stderr } = await fake.wcrm([
          ...toArgv(spec, input),
          '--json',
          ...(op.confirm ? ['--confirm', op.confirm] : []),
        ])
        assert.ok(exit === 0 || exit === 9, stderr)
        assert.equal(stdout, `${JSON.stringify(example.output)}\n`)
        assert.equal(fake.requests[0]!.path, `/v1/ops/${op.name}`)
        assert.deepEqual(fake.requests[0]!.input, input)
      }
    })

    it(`${op.cli} --help lists its flags, scope and confirmation`, async () => {
      const { exit, stdout } = await fake.wcrm([...op.cli.split(' '), '--help'])
      const spec = findCommand(op.cli)
      assert.equal(exit, 0)
      for (const field of spec.fields)
        assert.ok(
          stdout.includes(
            spec.args.includes(field.name)
              ? `${field.required ? '<' : '['}${field.name}`
              : field.type === 'boolean'
                ? `--[no-]${field.flag.slice(2)}`
                : field.flag,
          ),
          field.name,
        )
      assert.ok(stdout.includes(op.scope))
      if (op.confirm) assert.ok(stdout.includes(`--confirm ${op.confirm}`))
    })
  }

  it('any text and list value reaches the server unchanged', async () => {
    const spec = findCommand('contacts upsert')
    const value = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constant('null'),
      fc.constant('-'),
      fc.constant('@x'),
      fc.constant('--json'),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.record(
          {
            phone: value,
            name: value,
            tags: fc.array(value, { maxLength: 3 }),
            attributes: fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }),
          },
          { requiredKeys: [] },
        ),
        async (input) => {
          fake.requests.length = 0
          const { exit, stderr } = await fake.wcrm([...toArgv(spec, input), '--json'])
          assert.equal(exit, 0, stderr)
          assert.deepEqual(fake.requests[0]!.input, JSON.parse(JSON.stringify(input)))
        },
      ),
      { numRuns: 60 },
    )
  })

  it('list flags accept commas, repetition, JSON, a file and standard input', async () => {
    const file = join(fake.home, 'ids.txt')
    writeFileSync(file, '1\n2\n')
    for (const [argv, stdin] of [
      [['1,2'], ''],
      [['1', '2'], ''],
      [['["1","2"]'], ''],
      [[`@${file}`], ''],
      [['-'], '1\n2\n'],
    ] as [string[], string][]) {
      await fake.wcrm(
        ['contacts', 'tag', '--tags', 'VIP', ...argv.flatMap((word) => ['--contact-ids', word])],
        {
          stdin,
        },
      )
      assert.deepEqual(fake.requests.at(-1)!.input, { contact_ids: ['1', '2'], tags: ['VIP'] })
    }
  })

  it('boolean flags accept =value, --no- and null, and do not consume the next word', async () => {
    await fake.wcrm(['contacts', 'update', '--starred', '42', '--dnd=false'])
    assert.deepEqual(fake.requests.at(-1)!.input, { contact_id: '42', starred: true, dnd: false })
    await fake.wcrm(['contacts', 'update', '--no-starred', '42', '--json', '--name', 'null'])
    assert.deepEqual(fake.requests.at(-1)!.input, { contact_id: '42', starred: false, name: null })
  })

  it('--input holds the whole input including path fields; flags override it', async () => {
    await fake.wcrm(['contacts', 'update', '--input', '-', '--name', 'B'], {
      stdin: '{"contact_id":"42","name":"A","dnd":true}',
    })
    assert.deepEqual(fake.requests[0]!.input, { contact_id: '42', name: 'B', dnd: true })
  })

  it('api: a change whose outcome is not known is reported with its key, as of any command', async () => {
    for (const argv of [
      ['api', 'POST', '/v1/groups', '-f', 'name=abc'],
      ['groups', 'create', '--name', 'abc'],
    ]) {
      fake.responses = [{ status: 502, body: '<html>', headers: { 'Content-Type': 'text/html' } }]
      const { exit, stderr } = await fake.wcrm(argv)
      const key = fake.requests.at(-1)!.headers['idempotency-key']
      assert.equal(exit, 8, stderr)
      assert.ok(stderr.includes(`wcrm ${argv.join(' ')} --idempotency-key ${key}`), stderr)
    }
  })

  for (const [argv, description] of [
    [['contacts', 'search', '--limit', 'ten'], 'an invalid number'],
    [['contacts', 'update', '1', '--attributes', '{'], 'broken JSON'],
    [['contacts', 'update', '1', '--attributes', '@/nonexistent'], 'a missing file'],
    [['groups', 'create', '--input', '{"name":"A","dry_run":true,"dry_run":false}'], 'a field given twice'],
    [['contacts', 'update', '1', '--attributes', '{"a":1,"a":2}'], 'a field given twice within another'],
    [['contacts', 'serch'], 'an unknown verb'],
    [['nope'], 'an unknown group'],
    [['contacts', 'update'], 'a missing id'],
    [['contacts', 'get', '1', '2'], 'too many arguments'],
    [['contacts', 'get', '1', '--nope'], 'an unknown flag'],
    [['contacts', 'get', '1', '--json=nope'], 'an unknown JSON field'],
    [['contacts', 'update', '1', '--starred=maybe'], 'an invalid boolean'],
    [['whoami', '--url', 'nope'], 'an invalid URL'],
  ] as [string[], string][]) {
    it(`usage error: exits 2 without a request: ${description}`, async () => {
      const plain = await fake.wcrm(argv)
      assert.deepEqual([plain.exit, plain.stdout, fake.requests.length], [2, '', 0])
      if (!argv.includes('--json=nope')) assert.match(plain.stderr, /^Error: /)
      const json = await fake.wcrm([...argv, '--json'])
      assert.deepEqual([json.exit, json.stdout], [2, ''])
      assert.equal((JSON.parse(json.stderr) as { code: string }).code, 'invalid_input')
    })
  }
})

describe('CLI: words of other programs', () => {
  for (const [words, hint] of [
    [['version'], 'wcrm --version'],
    [['start'], 'wcrm serve'],
    [['init'], 'wcrm admin init'],
    [['contacts', 'version'], 'wcrm contacts --help'],
    [['contacts', 'search', 'ada'], 'wcrm contacts search --query TEXT'],
    [['conversations', 'ls', 'ada', 'byron'], 'wcrm conversations search --query TEXT'],
    [['groups', 'list', 'vip'], 'wcrm groups list --help'],
    [['-V'], 'wcrm --version'],
    [['contacts', 'search', '-v'], 'wcrm --version'],
    [['contacts', 'delete', '1', '--yes'], '--confirm delete'],
    [['contacts', 'delete', '1', '-f'], '--confirm delete'],
    [['groups', 'create', '--name', 'A', '-y'], 'Leave it out'],
    [['contacts', 'get', '1', '--nope'], 'wcrm contacts get --help'],
  ] as [string[], string][]) {
    it(`${words.join(' ')} is refused, and told: ${hint}`, async () => {
      const { exit, stderr } = await fake.wcrm(words)
      assert.deepEqual([exit, fake.requests.length], [2, 0])
      assert.match(stderr, /unknown (?:option|command)|too many arguments/)
      assert.equal(stderr.trimEnd().split('\n').at(-1)!.includes(hint), true, stderr)
    })
  }
})

describe('CLI: commands that there are not', () => {
  for (const [words, command] of [
    ['reply 95 hello', 'wcrm conversations reply'],
    ['tickets list', 'wcrm conversations search'],
    ['contacts find ada', 'wcrm contacts search'],
    ['broadcasts create', 'wcrm messages send-bulk'],
    ['newsletter', 'wcrm messages send-bulk'],
    ['webhooks add', 'wcrm webhooks create'],
  ] as const) {
    it(`${words}: suggests ${command}`, async () => {
      const { exit, stderr } = await fake.wcrm(words.split(' '))
      const [, detail = '', hint = ''] = stderr.trimEnd().split('\n')
      assert.equal(exit, 2)
      assert.match(detail, /^ {2}unknown command '\w+'$/)
      assert.match(hint, /^Did you mean: wcrm [^?]+\? See: wcrm .*--help$/)
      assert.ok(hint.includes(`${command},`) || hint.includes(`${command}?`), hint)
    })
  }

  it('one wrong letter names the command, and words that nothing fits name the help', async () => {
    for (const [words, text] of [
      [['contacts', 'serch'], "unknown command 'serch' (Did you mean search?)\nSee: wcrm contacts --help\n"],
      [
        ['contacts', 'serach'],
        "unknown command 'serach' (Did you mean search?)\nSee: wcrm contacts --help\n",
      ],
      [
        ['ops', 'crm_get_contct'],
        'There is no operation "crm_get_contct".\nDid you mean: crm_get_contact?\n',
      ],
      [
        ['schema', 'contacts', 'serch'],
        'There is no command "contacts serch".\n' +
          'Did you mean: wcrm schema contacts search   All of them: wcrm contacts --help\n',
      ],
      [['servee'], "unknown command 'servee' (Did you mean serve?)\nSee: wcrm --help\n"],
      [['xyzzy'], "unknown command 'xyzzy'\nSee: wcrm --help\n"],
    ] as const) {
      const { exit, stderr } = await fake.wcrm([...words])
      assert.equal(exit, 2)
      assert.ok(stderr.endsWith(text), stderr)
    }
  })
})

describe('CLI: usage errors below a command', () => {
  for (const [words, command] of [
    ['admin keys create', 'wcrm admin keys create'],
    ['admin keys creat', 'wcrm admin keys'],
    ['admin backup verify', 'wcrm admin backup verify'],
    ['admin staff ls --colour', 'wcrm admin staff list'],
    ['sandbox say', 'wcrm sandbox say'],
    ['sandbox clock back', 'wcrm sandbox clock'],
    ['serve --prt 3', 'wcrm serve'],
    ['worker now', 'wcrm worker'],
  ] as const) {
    it(`${words}: names the help of ${command}`, async () => {
      const { exit, stdout, stderr } = await fake.wcrm(words.split(' '))
      assert.deepEqual([exit, stdout], [2, ''])
      assert.ok(stderr.endsWith(`\nSee: ${command} --help\n`), stderr)
      assert.doesNotMatch(stderr, /^error: /)
    })
  }
})

describe('CLI: help', () => {
  it('help lists the groups; wcrm without arguments prints help', async () => {
    const [bare, help, version] = [
      await fake.wcrm([]),
      await fake.wcrm(['--help']),
      await fake.wcrm(['--version']),
    ]
    assert.deepEqual([bare.exit, help.exit, bare.stdout], [0, 0, help.stdout])
    for (const group of new Set(manifest.commands.map((command) => command.group)))
      assert.ok(help.stdout.includes(`\n  ${group} `), group)
    assert.equal(version.stdout, `${manifest.version}\n`)
  })

  it('help <group> <verb> equals <group> <verb> --help', async () => {
    assert.equal(
      (await fake.wcrm(['help', 'contacts', 'get'])).stdout,
      (await fake.wcrm(['contacts', 'get', '--help'])).stdout,
    )
  })

  it('a group without a verb lists its verbs on stderr and exits 2', async () => {
    const { exit, stdout, stderr } = await fake.wcrm(['contacts'])
    assert.deepEqual([exit, stdout], [2, ''])
    assert.match(stderr, /search/)
  })
})
