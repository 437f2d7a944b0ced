import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { watch } from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { detectDelimiter } from '../../cli/import/csv.ts'
import { type ImportField, mapColumns } from '../../cli/import/columns.ts'
import { escapeFormula, joinNames, parseCsvRow, splitNames } from '../../cli/import/rows.ts'
import { type ImportBatch, createBatches, sendInOrder } from '../../cli/import/send.ts'
import type { ImportState } from '../../cli/import/state.ts'
import { doAs } from '../calls.ts'
import { everyDatabase, runCli } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

const folder = mkdtempSync(join(tmpdir(), 'wcrm-import-test-'))
after(() => rmSync(folder, { recursive: true }))

let files = 0
/** A file of its own with this text. */
const fileOf = (text: string | Buffer, ending = 'csv'): string => {
  const path = join(folder, `rows-${++files}.${ending}`)
  writeFileSync(path, text)
  return path
}

type Summary = {
  rows: number
  created: number
  updated: number
  unchanged: number
  failed: number
  dry_run?: true
}

const envOf = (server: TestServer, key: string): Record<string, string> => ({
  WCRM_URL: server.url,
  WCRM_API_KEY: key,
  XDG_CONFIG_HOME: '/nonexistent',
  XDG_STATE_HOME: join(folder, 'state'),
  PATH: process.env.PATH!,
})

/** Runs `wcrm contacts import` with these words; the summary without its time. */
const importing =
  (server: TestServer, key: string) =>
  async (words: string[], stdin = ''): Promise<{ exit: number; summary: Summary; stderr: string }> => {
    const { exit, stdout, stderr } = await runCli(
      ['contacts', 'import', ...words, '--json'],
      envOf(server, key),
      stdin,
    )
    const { seconds, ...summary } = (stdout === '' ? {} : JSON.parse(stdout)) as Summary & {
      seconds?: number
    }
    assert.equal(typeof seconds, stdout === '' ? 'undefined' : 'number')
    return { exit, summary: summary as Summary, stderr }
  }

type Person = {
  name: string | null
  phone: string | null
  email: string | null
  tags: string[]
  groups: string[]
  attributes: Record<string, unknown>
}

/** Everybody in a workspace, by phone. */
const everybody = async (server: TestServer, workspace: TestWorkspace): Promise<Person[]> => {
  type Found = Omit<Person, 'tags' | 'groups' | 'attributes'> & {
    tags: { name: string }[]
    groups: { name: string }[]
    attributes: { key: string; typed_value: unknown; value: unknown }[]
  }
  const { data } = (await doAs(server, workspace.owner.key)('crm_search_contacts', {
    detail: 'full',
    limit: 100,
  })) as { data: Found[] }
  return data
    .map(({ name, phone, email, tags, groups, attributes }) => ({
      name,
      phone,
      email,
      tags: tags.map((t) => t.name),
      groups: groups.map((g) => g.name),
      attributes: Object.fromEntries(attributes.map((a) => [a.key, [a.value, a.typed_value]])),
    }))
    .toSorted((a, b) => String(a.phone).localeCompare(String(b.phone)))
}

const countOf = async (
  server: TestServer,
  table: string,
  workspace: TestWorkspace,
  type?: string,
): Promise<number> => {
  const { rows } = await sql<{
    n: number
  }>`select count(*)::int as n from ${sql.table(table)} where workspace_id = ${workspace.id} ${type ? sql`and type = ${type}` : sql``}`.execute(
    server.db,
  )
  return rows[0]!.n
}

const field = (key: string, label: string | null = null, read_only = false): ImportField => ({
  key,
  label,
  type: 'text',
  read_only,
})

describe('import: columns', () => {
  const fields = [
    field('email', 'Email'),
    field('city', 'Home town'),
    field('mobile', 'Second phone'),
    field('score', 'Score', true),
  ]
  const read = (header: string[], map: string[] = [], ignore: string[] = []) =>
    mapColumns(header, fields, { map, ignore })

  it('match by name, alias, key and label, ignoring case, spaces and underscores', () => {
    assert.deepEqual(
      read(['PHONE number', 'Full_Name', 'E-Mail', 'Tags', 'groups', 'Attributes.City']).targets,
      ['phone', 'name', 'email', 'tags', 'groups', 'attributes.city'],
    )
    assert.deepEqual(read(['tel', 'home_TOWN']).targets, ['phone', 'attributes.city'])
  })

  it('a custom field takes precedence over an alias of phone', () => {
    assert.deepEqual(read(['phone', 'Mobile']).targets, ['phone', 'attributes.mobile'])
  })

  it('read-only columns are ignored and listed', () => {
    assert.deepEqual(read(['id', 'phone', 'score', 'created_at', '']), {
      targets: [undefined, 'phone', undefined, undefined, undefined],
      ignored: ['id', 'score', 'created_at', 'column 5 (no name)'],
    })
  })

  for (const [about, header, map, detail, fix] of [
    [
      'an unknown column',
      ['phone', 'Sity'],
      [],
      /"Sity"/,
      /Did you mean attributes\.city\? Use --map "Sity=attributes\.city" or --ignore "Sity"/,
    ],
    [
      'an unknown column like no other',
      ['phone', 'Horoscope'],
      [],
      /"Horoscope"/,
      /^Use --map "Horoscope=attributes\.<key>"/,
    ],
    ['no phone', ['name', 'city'], [], /No column holds the phone/, /--map "name=phone"/],
    ['two phones', ['phone', 'tel'], [], /Both "phone" and "tel" map to phone/, /--ignore "tel"/],
    ['a map from nowhere', ['phone'], ['x=name'], /no column "x"/, /phone/],
    ['a map to nowhere', ['phone', 'x'], ['x=nowhere'], /no field "nowhere"/, /attributes\.city/],
    ['a map that is none', ['phone', 'x'], ['x'], /not "x"/, /--map "City=attributes\.city"/],
  ] as [string, string[], string[], RegExp, RegExp][]) {
    it(`${about} is refused with a fix`, () => {
      assert.throws(
        () => read(header, map),
        (error: { exitCode: number; message: string; problem: { errors: { fix: string }[] } }) => {
          assert.equal(error.exitCode, 2)
          assert.match(error.message, detail)
          assert.match(error.problem.errors[0]!.fix, fix)
          return true
        },
      )
    })
  }

  it('--map and --ignore accept any column', () => {
    assert.deepEqual(
      read(
        ['Nr', 'a=b', 'Vorname', 'Nachname', 'x'],
        ['nr=phone', 'a=b=home town', 'Vorname=name', 'Nachname=name'],
        ['x'],
      ).targets,
      ['phone', 'attributes.city', 'name', 'name', undefined],
    )
  })

  it('the delimiter is the most frequent one in the header, outside quotes', () => {
    assert.deepEqual(['a,b', 'a;b,c;d', 'a\tb\n,,,,', '"a,b,c";d', 'a'].map(detectDelimiter), [
      ',',
      ';',
      '\t',
      ';',
      ',',
    ])
  })
})

describe('import: cells', () => {
  const cells = (header: string[], row: string[], clearEmpty = false) =>
    parseCsvRow(1, row, mapColumns(header, [field('city')], { map: [], ignore: [] }), clearEmpty)

  it('names and text survive an export and import unchanged', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme', minLength: 1 }).filter((name) => name.trim() === name)),
        (names) => {
          assert.deepEqual(splitNames(joinNames(names)), names)
        },
      ),
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc
            .tuple(fc.constantFrom("'", "''", ''), fc.constantFrom('=', '+', '-', '@', '\t'), fc.string())
            .map((parts) => parts.join('')),
        ),
        (text) => {
          const [marked] = [escapeFormula(text)]
          assert.doesNotMatch(marked, /^[=+\-@\t\r]/)
          if (text.trim() !== '')
            assert.deepEqual(cells(['phone', 'city'], ['1', marked]).draft.attributes, { city: text })
        },
      ),
    )
  })

  it('empty cells are omitted, or clear the field with --clear-empty', () => {
    assert.deepEqual(cells(['phone', 'name', 'email', 'city', 'tags'], ['1', ' ', '', '', '']).draft, {
      phone: '1',
    })
    assert.deepEqual(cells(['phone', 'name', 'email', 'city', 'tags'], ['1', ' ', '', '', ''], true).draft, {
      phone: '1',
      email: '',
      attributes: { city: '' },
    })
    assert.deepEqual(cells(['phone', 'name', 'city'], ['1']).draft, { phone: '1' })
  })

  it('masked or rounded phones and rows with too many cells are rejected locally', () => {
    for (const phone of ['*****0042', "'*****0042", '1.5550100042E+11', '1,55501E10'])
      assert.equal(cells(['phone'], [phone]).rejection?.code, 'invalid_input', phone)
    assert.match(
      cells(['phone', 'name'], ['1', '2', '3']).rejection!.message,
      /3 cells, but the header has 2/,
    )
  })
})

describe('import: batches', () => {
  const drafts = async function* (phones: string[]) {
    let line = 1
    for (const phone of phones) yield { line: ++line, draft: { phone } }
  }
  const all = async (batches: AsyncIterable<ImportBatch>) => {
    const sizes: number[] = []
    for await (const batch of batches) sizes.push(batch.rows.length)
    return sizes
  }

  it('hold at most 500 rows and stay within the request size limit', async () => {
    assert.deepEqual(await all(createBatches(drafts(Array.from({ length: 1201 }, String)))), [500, 500, 201])
    assert.deepEqual(
      await all(createBatches(drafts(['x'.repeat(5_000_000), 'x'.repeat(5_000_000), 'x']))),
      [1, 2],
    )
  })

  it('three are sent at once and completed in order, but never two that may share a phone', async () => {
    const phones = [
      ...Array.from({ length: 2000 }, (_, n) => `+1 555 ${1_000_000 + n}`),
      ...Array.from({ length: 500 }, (_, n) => `001555${1_000_000 + n}`),
      'odd number',
      '+1 555 9999999',
    ]
    const inFlight = new Set<number>()
    const together: string[] = []
    const settled: number[] = []
    await sendInOrder(
      createBatches(drafts(phones)),
      async ({ index: at }) => {
        inFlight.add(at)
        together.push([...inFlight].join())
        // Later ones answer first.
        for (let n = at; n < 10; n++) await turn()
        inFlight.delete(at)
      },
      ({ index: at }) => {
        settled.push(at)
      },
    )
    assert.deepEqual(settled, [0, 1, 2, 3, 4, 5])
    assert.ok(together.includes('0,1,2'), together.join(' '))
    // The fifth holds the phones of the first, the sixth one that is not plain to compare.
    assert.ok(
      together.every((at) => !/0.*4|4.*5|3.*5/.test(at)),
      together.join(' '),
    )
  })
})

everyDatabase('import: files', (server, database) => {
  const scene = async (fields: Record<string, unknown>[] = []) => {
    const workspace = await makeWorkspace(server())
    const call = doAs(server(), workspace.owner.key)
    for (const one of fields) await call('crm_create_custom_field', one)
    return { workspace, call, run: importing(server(), workspace.owner.key) }
  }

  it('CSV with byte order mark, semicolons, quotes, line breaks and CRLF is imported', async () => {
    const { workspace, call, run } = await scene([{ key: 'city', label: 'Home town', type: 'text' }])
    await call('crm_create_group', { name: 'Club' })
    const file = fileOf(
      '\uFEFFPhone Number;Name;E-Mail;Tags;Group;Home Town\r\n+1 555 010 0042;"Ada ""A"";\nLovelace";ada@example.com;"VIP, ""a,b""";club;\'=1+1\r\n\r\n15550100043;Grace;;;;\r\n',
    )
    assert.deepEqual(await run([file]), {
      exit: 0,
      summary: { rows: 2, created: 2, updated: 0, unchanged: 0, failed: 0 },
      stderr: '',
    })
    assert.deepEqual(await everybody(server(), workspace), [
      {
        name: 'Ada "A";\nLovelace',
        phone: '15550100042',
        email: 'ada@example.com',
        tags: ['a,b', 'VIP'],
        groups: ['Club'],
        attributes: { city: ['=1+1', '=1+1'], email: ['ada@example.com', 'ada@example.com'] },
      },
      { name: 'Grace', phone: '15550100043', email: null, tags: [], groups: [], attributes: {} },
    ])
    assert.deepEqual((await run([file])).summary, {
      rows: 2,
      created: 0,
      updated: 0,
      unchanged: 2,
      failed: 0,
    })
  })

  it('standard input, tab-separated values and NDJSON are imported', async () => {
    const { workspace, run } = await scene()
    assert.deepEqual((await run(['-'], 'tel\tname\n+15550100042\tAda\n')).summary.created, 1)
    assert.deepEqual(
      (await run(['-'], '{"phone":"+15550100043","name":"Grace","tags":["VIP"]}\r\n\n{"phone":15550100044}'))
        .summary,
      { rows: 2, created: 2, updated: 0, unchanged: 0, failed: 0 },
    )
    assert.deepEqual(
      (await everybody(server(), workspace)).map(({ name, tags }) => [name, tags]),
      [
        ['Ada', []],
        ['Grace', ['VIP']],
        [null, []],
      ],
    )
  })

  it('an unreadable or invalid file is refused before any request', async () => {
    const { workspace, run } = await scene()
    for (const [text, ending, about] of [
      [Buffer.from('phone,name\n+15550100042,Andr\xe9\n', 'latin1'), 'csv', /UTF-8/],
      ['', 'csv', /empty/],
      ['[{"phone":"+15550100042"}]', 'json', /JSON array/],
      ['phone,name\n+15550100042,A\n+15550100043,"B\n', 'csv', /from line 3 on: a quote is not closed/],
      ['phone,name\n+15550100042,a "b" c\n', 'csv', /from line 2 on/],
      ['PK\u0003\u0004', 'xlsx', /spreadsheet/],
      ['phone,groups\n+15550100042,Nope\n', 'csv', /no group \\"Nope\\"/],
      ['phone,nmae\n+15550100042,A\n', 'csv', /"nmae\\".*Did you mean name/],
    ] as [string | Buffer, string, RegExp][]) {
      const { exit, stderr } = await run([fileOf(text, ending)])
      assert.equal(exit, 2, stderr)
      assert.match(stderr, about)
    }
    assert.equal((await run([join(folder, 'missing.csv')])).exit, 2)
    assert.equal((await run([fileOf('phone\n1'), '--rows', '[]'])).exit, 2)
    assert.equal(await countOf(server(), 'contacts', workspace), 0)
  })

  it('--create-groups creates missing groups; a dry run creates none', async () => {
    const { workspace, run } = await scene()
    const file = fileOf('phone,groups\n+15550100042,"A, B"\n+15550100043,a\n')
    assert.deepEqual(await run([file, '--create-groups', '--dry-run']), {
      exit: 0,
      summary: { rows: 2, created: 2, updated: 0, unchanged: 0, failed: 0, dry_run: true },
      stderr: '',
    })
    assert.deepEqual(
      [await countOf(server(), 'contacts', workspace), await countOf(server(), 'groups', workspace)],
      [0, 0],
    )
    assert.equal((await run([file, '--create-groups'])).summary.created, 2)
    assert.deepEqual(
      (await everybody(server(), workspace)).map(({ groups }) => groups),
      [['A', 'B'], ['A']],
    )
  })

  it('a row that fails keeps its line number, and other rows are imported', async () => {
    const { run } = await scene()
    const file = fileOf(
      'phone,name,email\n+15550100042,"A\nB",\n030 1234,C,\n*****0042,D,\n+15550100043,E,nope\n+15550100044,F,\n',
    )
    const kept = join(folder, 'failures.ndjson')
    const told = await run([file])
    assert.deepEqual(
      [told.exit, told.summary],
      [9, { rows: 5, created: 2, updated: 0, unchanged: 0, failed: 3 }],
    )
    assert.match(told.stderr, /^Line 4: phone .*\nLine 5: phone is masked\.\nLine 6: email .*\n$/)
    const { exit, stderr } = await run([file, '--failures', kept])
    assert.deepEqual([exit, stderr], [9, `The failed rows are in ${kept}.\n`])
    const failures = readFileSync(kept, 'utf8')
      .trimEnd()
      .split('\n')
      .map(
        (line) =>
          JSON.parse(line) as { line: number; row: object; code: string; errors: { pointer: string }[] },
      )
    assert.deepEqual(
      failures.map(({ line, row, code, errors }) => [line, row, code, errors[0]!.pointer]),
      [
        [4, { phone: '030 1234', name: 'C' }, 'invalid_input', '#/phone'],
        [5, { phone: '*****0042', name: 'D' }, 'invalid_input', '#/phone'],
        [6, { phone: '+15550100043', name: 'E', email: 'nope' }, 'invalid_input', '#/email'],
      ],
    )
    assert.equal(statSync(kept).mode & 0o777, 0o600)
    assert.equal((await run([file, '--failures', file])).exit, 2)
  })

  it('at most 20 failures are printed', async () => {
    const { run } = await scene()
    const { summary, stderr } = await run(['-'], `phone\n${'1\n'.repeat(600)}`)
    assert.equal(summary.failed, 600)
    assert.equal(stderr.split('\n').length, 22)
    assert.match(stderr, /580 more rows failed: --failures FILE/)
  })

  it('an exported file imports unchanged, as CSV and as NDJSON', async () => {
    const options = [
      { label: 'b', value: 'a' },
      { label: 'a, c', value: 'b' },
    ]
    const types = [
      'text',
      'textarea',
      'select',
      'multiselect',
      'checkbox',
      'radio',
      'date',
      'datetime',
      'number',
      'email',
      'url',
      'phone',
      'int',
      'float',
      'boolean',
      'decimal',
    ]
    const fields = types.map((type) => ({
      key: `my_${type}`,
      type,
      ...(['select', 'multiselect', 'radio'].includes(type) ? { options } : {}),
    }))
    const { workspace, call } = await scene(fields)
    await call('crm_create_group', { name: 'a; "b"' })
    await call('crm_create_group', { name: 'Club' })
    const groups = ((await call('crm_list_groups')) as { data: { id: string }[] }).data.map(({ id }) => id)
    await call('crm_upsert_contact', {
      phone: '+15550100042',
      name: '=HYPERLINK("x")',
      email: 'ada@example.com',
      tags: ['a, b', '+1', 'say "hi"', '€'],
      group_ids: groups,
      attributes: {
        my_text: "'=1",
        my_textarea: 'two\nlines, "quoted"; and more',
        my_select: 'a',
        my_multiselect: ['a', 'b'],
        my_checkbox: true,
        my_radio: 'b',
        my_date: '2026-02-28',
        my_datetime: '2026-02-28T12:30:15.123Z',
        my_number: -1.5e-7,
        my_email: 'b@example.com',
        my_url: 'https://example.com/?a,b',
        my_phone: '+15550100099',
        my_int: -42,
        my_float: 0.1,
        my_boolean: false,
        my_decimal: '-12345678901234567890.12345678',
      },
    })
    await call('crm_upsert_contact', { phone: '+15550100043', tags: ['-'] })
    const before = await everybody(server(), workspace)
    assert.equal(Object.keys(before[0]!.attributes).length, types.length + 1)
    for (const format of ['csv', 'ndjson']) {
      const file = join(folder, `round-${database}.${format}`)
      const exported = await runCli(
        ['contacts', 'export', '--format', format, '--output', file],
        envOf(server(), workspace.owner.key),
      )
      assert.deepEqual(exported, { exit: 0, stdout: '', stderr: '' })
      const other = await scene(fields)
      const { exit, summary, stderr } = await other.run([file, '--create-groups'])
      assert.deepEqual([exit, summary.created], [0, 2], stderr)
      assert.match(stderr, /^Ignored, because these fields are read-only: id, .*created_at/)
      assert.deepEqual(await everybody(server(), other.workspace), before)
      assert.deepEqual((await other.run([file])).summary.unchanged, 2)
    }
  })

  it('an export accepts a filter and a saved filter', async () => {
    const { workspace, call } = await scene()
    for (const n of [2, 3, 4]) await call('crm_upsert_contact', { phone: `+1555010004${n}`, name: `N${n}` })
    const filter = { name: { in: ['N2', 'N4'] } }
    const {
      saved_filter: { id },
    } = (await call('crm_create_saved_filter', { name: 'Even', filter })) as { saved_filter: { id: string } }
    for (const words of [
      ['--filter', JSON.stringify(filter)],
      ['--saved-filter-id', id],
    ]) {
      const { stdout, stderr } = await runCli(
        [
          'contacts',
          'export',
          '--format',
          'ndjson',
          '--sort',
          '{"field":"name","direction":"asc"}',
          ...words,
        ],
        envOf(server(), workspace.owner.key),
      )
      assert.equal(stderr, '')
      assert.deepEqual(
        stdout
          .trimEnd()
          .split('\n')
          .map((line) => (JSON.parse(line) as { name: string }).name),
        ['N2', 'N4'],
      )
    }
  })

  it('masked phones of an export are never imported as phones', async () => {
    const { workspace, run, call } = await scene()
    await call('crm_upsert_contact', { phone: '+15550100042', name: 'Ada' })
    const agent = await workspace.staff({ role: 'agent', hide_phone_numbers: true })
    for (const format of ['csv', 'ndjson']) {
      const { stdout } = await runCli(['contacts', 'export', '--format', format], envOf(server(), agent.key))
      assert.match(stdout, /\*\d{3,4},|\*\d{3,4}"/)
      assert.doesNotMatch(stdout, /15550100042/)
      const { exit, summary, stderr } = await run(['-'], stdout)
      assert.deepEqual([exit, summary.failed, summary.rows], [9, 1, 1])
      assert.match(stderr, /phone is masked/)
    }
  })

  it('rows with the same phone keep their order across batches', async () => {
    const { workspace, run } = await scene()
    const lines = Array.from({ length: 1600 }, (_, n) =>
      n % 400 === 7 ? `+1 (555) 010-0042,Name ${n}` : `+1556${1_000_000 + n},N${n}`,
    )
    assert.equal((await run(['-'], `phone,name\n${lines.join('\n')}\n`)).summary.created, 1597)
    const { rows } = await sql<{
      name: string
    }>`select name from contacts where workspace_id = ${workspace.id} and phone = '15550100042'`.execute(
      server().db,
    )
    assert.equal(rows[0]!.name, 'Name 1207')
  })

  it('a key without the scope stops the import with its exit code', async () => {
    const { workspace } = await scene()
    const reader = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })
    const file = fileOf('phone\n+15550100042\n')
    const { exit, stdout, stderr } = await runCli(['contacts', 'import', file], envOf(server(), reader.key))
    assert.deepEqual([exit, stdout], [4, ''])
    assert.match(
      stderr,
      /crm:write[^]*Stopped after 0 of 1 rows\. To continue, run the same command with --resume/,
    )
    assert.equal(
      (
        JSON.parse(
          (await importing(server(), reader.key)([file, '--create-groups'])).stderr.replace(
            /^An import.*\n/,
            '',
          ),
        ) as { code: string }
      ).code,
      'insufficient_scope',
    )
    assert.equal((await importing(server(), 'wc_live_nobody')([fileOf('phone\n+15550100042\n')])).exit, 4)
  })

  it('a killed import resumes, and every row is imported once', async () => {
    const { workspace } = await scene()
    const rows = 20_000
    const bad = (n: number) => n % 1000 === 999
    const file = fileOf(
      `phone,name,tags\n${Array.from({ length: rows }, (_, n) => `${bad(n) ? '0' : '+1555'}${1_000_000 + n},N${n},t${n % 7}`).join('\n')}\n`,
    )
    const failures = join(folder, `killed-${database}.ndjson`)
    const env = { ...envOf(server(), workspace.owner.key), XDG_STATE_HOME: join(folder, `state-${database}`) }
    const states = join(env.XDG_STATE_HOME, 'wcrm', 'import')
    mkdirSync(states, { recursive: true })
    const state = (): ImportState | undefined =>
      readdirSync(states)
        .filter((name) => name.endsWith('.json'))
        .map((name) => JSON.parse(readFileSync(join(states, name), 'utf8')) as ImportState)[0]
    const words = ['contacts', 'import', file, '--failures', failures]
    for (const until of [2000, 9000]) {
      const child = spawn(process.execPath, ['bin/wcrm.js', ...words, '--resume'], { env, stdio: 'ignore' })
      const exited = once(child, 'exit') as Promise<[number | null, string | null]>
      const watching = new AbortController()
      void exited.then(() => watching.abort())
      await (async () => {
        for await (const _ of watch(states, { signal: watching.signal }))
          if ((state()?.totals.rows ?? 0) >= until) child.kill('SIGKILL')
      })().catch(() => {})
      assert.equal((await exited)[1], 'SIGKILL')
      assert.ok(state()!.totals.rows < rows)
    }
    const stopped = state()!
    assert.ok(stopped.totals.rows >= 9000)
    assert.equal((await runCli(['contacts', 'import', file, '--resume'], env)).exit, 2, 'other flags')
    const { exit, stdout, stderr } = await runCli(
      [...words, '--resume', '--json=rows,created,updated,unchanged,failed'],
      env,
    )
    assert.deepEqual(
      [exit, JSON.parse(stdout)],
      [9, { rows, created: rows - 20, updated: 0, unchanged: 0, failed: 20 }],
      stderr,
    )
    assert.equal(state(), undefined)
    assert.deepEqual(
      [
        await countOf(server(), 'contacts', workspace),
        await countOf(server(), 'events', workspace, 'contact.created/1'),
      ],
      [rows - 20, rows - 20],
    )
    const lines = readFileSync(failures, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { line: number }).line)
    assert.deepEqual(
      lines,
      Array.from({ length: 20 }, (_, n) => (n + 1) * 1000 + 1),
    )
  })

  it('a changed file is not resumed, and an interrupted import is reported', async () => {
    const { workspace, run } = await scene()
    const file = fileOf('phone\n+15550100042\n')
    const reader = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })
    assert.equal((await importing(server(), reader.key)([file])).exit, 4)
    writeFileSync(file, 'phone\n+15550100043\n')
    const changed = await run([file, '--resume'])
    assert.equal(changed.exit, 2)
    assert.match(changed.stderr, /has changed/)
    const again = await run([file])
    assert.match(again.stderr, /interrupted after 0 rows/)
    assert.deepEqual([again.exit, again.summary.created], [0, 1])
    assert.equal((await run([file, '--resume'])).summary.unchanged, 1)
  })
})

everyDatabase(
  'Import under a low limit',
  (server) => {
    it('an import waits for the rate limit and continues', async () => {
      const workspace = await makeWorkspace(server())
      const call = doAs(server(), workspace.owner.key)
      for (let n = 0; n < 60; n++) await call('crm_create_group', { name: 'A' })
      const { exit, summary, stderr } = await importing(server(), workspace.owner.key)(
        ['-'],
        `phone\n${Array.from({ length: 600 }, (_, n) => `+1555${1_000_000 + n}`).join('\n')}\n`,
      )
      assert.deepEqual([exit, summary.created], [0, 600])
      assert.match(stderr, /Rate limited: continuing in \d+ s\./)
    })
  },
  { limitWrite: 60 },
)
