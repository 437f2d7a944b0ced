import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import { sql } from 'kysely'
import fc from 'fast-check'
import { everyDatabase } from '../doors.ts'
import { countRows, listContacts, useImportFiles } from './import-files.ts'
import { type ImportField, mapColumns } from '../../cli/import/columns.ts'
import { detectDelimiter } from '../../cli/import/reader.ts'
import { joinNames } from '../../catalog/contacts/export-lines.ts'
import { escapeFormula } from '../../catalog/csv-line.ts'
import { parseCsvRow, splitNames } from '../../cli/import/rows.ts'
import { createBatches, type ImportBatch, sendInOrder } from '../../cli/import/send.ts'

const files = useImportFiles()

everyDatabase('import: files', (server) => {
  it('CSV with byte order mark, semicolons, quotes, line breaks and CRLF is imported', async () => {
    const { workspace, call, run } = await files.createScene(server(), [
      { key: 'city', label: 'Home town', type: 'text' },
    ])
    await call('crm_create_group', { name: 'Club' })
    const file = files.writeRows(
      '\uFEFFPhone Number;Name;E-Mail;Tags;Group;Home Town\r\n' +
        '+1 555 010 0042;"Ada ""A"";\nLovelace";ada@example.com;"VIP, ""a,b""";club;\'=1+1\r\n\r\n' +
        '15550100043;Grace;;;;\r\n',
    )
    assert.deepEqual(await run([file]), {
      exit: 0,
      summary: { rows: 2, created: 2, updated: 0, unchanged: 0, failed: 0 },
      stderr: '',
    })
    const unset = { dnd: false, starred: false, external_id: null, metadata: {} }
    assert.deepEqual(await listContacts(server(), workspace), [
      {
        ...unset,
        name: 'Ada "A";\nLovelace',
        phone: '15550100042',
        email: 'ada@example.com',
        tags: ['a,b', 'VIP'],
        groups: ['Club'],
        attributes: { city: ['=1+1', '=1+1'], email: ['ada@example.com', 'ada@example.com'] },
      },
      { ...unset, name: 'Grace', phone: '15550100043', email: null, tags: [], groups: [], attributes: {} },
    ])
    assert.deepEqual((await run([file])).summary, {
      rows: 2,
      created: 0,
      updated: 0,
      unchanged: 2,
      failed: 0,
    })
  })

  it('a line that tells Excel the delimiter is no row', async () => {
    const { workspace, run } = await files.createScene(server())
    const { exit, summary, stderr } = await run([
      files.writeRows('\uFEFFsep=;\r\nPhone;Name, first\r\n+15550100042;Ada\r\n0;Bea\r\n'),
      '--map',
      'Name, first=name',
    ])
    assert.deepEqual([exit, summary.created, summary.failed], [9, 1, 1])
    assert.match(stderr, /^Line 4: /)
    assert.deepEqual(
      (await listContacts(server(), workspace)).map(({ name }) => name),
      ['Ada'],
    )
  })

  it('standard input, tab-separated values and NDJSON are imported', async () => {
    const { workspace, run } = await files.createScene(server())
    assert.deepEqual((await run(['-'], 'tel\tname\n+15550100042\tAda\n')).summary.created, 1)
    assert.deepEqual(
      (await run(['-'], '{"phone":"+15550100043","name":"Grace","tags":["VIP"]}\r\n\n{"phone":15550100044}'))
        .summary,
      { rows: 2, created: 2, updated: 0, unchanged: 0, failed: 0 },
    )
    assert.deepEqual(
      (await listContacts(server(), workspace)).map(({ name, tags }) => [name, tags]),
      [
        ['Ada', []],
        ['Grace', ['VIP']],
        [null, []],
      ],
    )
  })

  it('an unreadable or invalid file is refused before any request', async () => {
    const { workspace, run } = await files.createScene(server())
    for (const [text, extension, pattern] of [
      [Buffer.from('phone,name\n+15550100042,Andr\xe9\n', 'latin1'), 'csv', /UTF-8/],
      [
        Buffer.from('\uFEFFphone\tname\n+15550100042\tAda\n', 'utf16le'),
        'csv',
        /UTF-16 text.*iconv -f UTF-16 /,
      ],
      [Buffer.from('phone\tname\n+15550100042\tAda\n', 'utf16le'), 'txt', /UTF-16 text.*iconv -f UTF-16 /],
      ['', 'csv', /empty/],
      ['[{"phone":"+15550100042"}]', 'json', /JSON array/],
      ['phone,name\n+15550100042,A\n+15550100043,"B\n', 'csv', /from line 3 on: a quote is not closed/],
      ['phone,name\n+15550100042,a "b" c\n', 'csv', /from line 2 on/],
      ['PK\u0003\u0004', 'xlsx', /spreadsheet/],
      ['phone,groups\n+15550100042,Nope\n', 'csv', /no group \\"Nope\\"/],
      ['phone,nmae\n+15550100042,A\n', 'csv', /"nmae\\".*Did you mean name/],
    ] as [string | Buffer, string, RegExp][]) {
      const { exit, stderr } = await run([files.writeRows(text, extension)])
      assert.equal(exit, 2, stderr)
      assert.match(stderr, pattern)
    }
    assert.equal((await run([join(files.folder, 'missing.csv')])).exit, 2)
    assert.equal((await run([files.writeRows('phone\n1'), '--rows', '[]'])).exit, 2)
    assert.equal(await countRows(server(), 'contacts', workspace), 0)
  })

  it('--create-groups creates missing groups; a dry run creates none', async () => {
    const { workspace, run } = await files.createScene(server())
    const file = files.writeRows('phone,groups\n+15550100042,"A, B"\n+15550100043,a\n')
    assert.deepEqual(await run([file, '--create-groups', '--dry-run']), {
      exit: 0,
      summary: { rows: 2, created: 2, updated: 0, unchanged: 0, failed: 0, dry_run: true },
      stderr: '',
    })
    assert.deepEqual(
      [await countRows(server(), 'contacts', workspace), await countRows(server(), 'groups', workspace)],
      [0, 0],
    )
    assert.equal((await run([file, '--create-groups'])).summary.created, 2)
    assert.deepEqual(
      (await listContacts(server(), workspace)).map(({ groups }) => groups),
      [['A', 'B'], ['A']],
    )
  })

  it('a row that fails keeps its line number, and other rows are imported', async () => {
    const { run } = await files.createScene(server())
    const file = files.writeRows(
      'phone,name,email\n+15550100042,"A\nB",\n030 1234,C,\n*****0042,D,\n' +
        '+15550100043,E,nope\n+15550100044,F,\n',
    )
    const failuresFile = join(files.folder, 'failures.ndjson')
    const printed = await run([file])
    assert.deepEqual(
      [printed.exit, printed.summary],
      [9, { rows: 5, created: 2, updated: 0, unchanged: 0, failed: 3 }],
    )
    assert.match(printed.stderr, /^Line 4: phone .*\nLine 5: phone is masked\.\nLine 6: email .*\n$/)
    const { exit, stderr } = await run([file, '--failures', failuresFile])
    assert.deepEqual([exit, stderr], [9, `The failed rows are in ${failuresFile}.\n`])
    const failures = readFileSync(failuresFile, 'utf8')
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
    assert.equal(statSync(failuresFile).mode & 0o777, 0o600)
    assert.equal((await run([file, '--failures', file])).exit, 2)
  })

  it('at most 20 failures are printed', async () => {
    const { run } = await files.createScene(server())
    const { summary, stderr } = await run(['-'], `phone\n${'1\n'.repeat(600)}`)
    assert.equal(summary.failed, 600)
    assert.equal(stderr.split('\n').length, 22)
    assert.match(stderr, /580 more rows failed: --failures FILE/)
  })

  it('rows with the same phone keep their order across batches', async () => {
    const { workspace, run } = await files.createScene(server())
    const lines = Array.from({ length: 1600 }, (_, n) =>
      n % 400 === 7 ? `+1 (555) 010-0042,Name ${n}` : `+1556${1_000_000 + n},N${n}`,
    )
    assert.equal((await run(['-'], `phone,name\n${lines.join('\n')}\n`)).summary.created, 1597)
    const { rows } = await sql<{ name: string }>`
      select name from contacts
      where workspace_id = ${workspace.id} and phone = '15550100042'`.execute(server().db)
    assert.equal(rows[0]!.name, 'Name 1207')
  })

  it('a dry run says which rows it cannot foresee: those of contacts of earlier batches', async () => {
    const { run } = await files.createScene(server())
    const lines = Array.from({ length: 500 }, (_, n) => `+1556${1_000_000 + n},e${n}`)
    const file = files.writeRows(
      `phone,external_id\n${[...lines, '+1 (556) 100-0001,', '+15550100099,e2', '+15550100098,e500'].join('\n')}\n`,
    )
    const rehearsed = await run([file, '--dry-run'])
    assert.match(rehearsed.stderr, /^Rows that repeat a phone or external id of earlier rows: 2\. /)
    const done = await run([file])
    assert.deepEqual([done.exit, done.summary.created, done.summary.failed], [9, 501, 1])
    assert.ok(!done.stderr.includes('earlier rows'), done.stderr)
  })
})

const textField = (key: string, label: string | null = null, read_only = false): ImportField => ({
  key,
  label,
  type: 'text',
  read_only,
})

describe('import: columns', () => {
  const fields = [
    textField('email', 'Email'),
    textField('city', 'Home town'),
    textField('mobile', 'Second phone'),
    textField('score', 'Score', true),
  ]
  const mapHeader = (header: string[], map: string[] = [], ignore: string[] = []) =>
    mapColumns(header, fields, { map, ignore })

  it('match by name, alias, key and label, ignoring case, spaces and underscores', () => {
    assert.deepEqual(
      mapHeader(['PHONE number', 'Full_Name', 'E-Mail', 'Tags', 'groups', 'Attributes.City']).targets,
      ['phone', 'name', 'email', 'tags', 'groups', 'attributes.city'],
    )
    assert.deepEqual(mapHeader(['tel', 'home_TOWN']).targets, ['phone', 'attributes.city'])
  })

  it('a custom field takes precedence over an alias of phone', () => {
    assert.deepEqual(mapHeader(['phone', 'Mobile']).targets, ['phone', 'attributes.mobile'])
  })

  it('read-only columns are ignored and listed', () => {
    assert.deepEqual(mapHeader(['id', 'phone', 'score', 'created_at', '']), {
      targets: [undefined, 'phone', undefined, undefined, undefined],
      ignored: ['id', 'score', 'created_at', 'column 5 (no name)'],
    })
  })

  for (const [description, header, map, detail, fix] of [
    [
      'an unknown column',
      ['phone', 'Sity'],
      [],
      /"Sity"/,
      /Did you mean attributes\.city\? Use --map "Sity=attributes\.city" or --ignore "Sity"/,
    ],
    [
      'an unknown column without a similar field',
      ['phone', 'Horoscope'],
      [],
      /"Horoscope"/,
      /^Use --map "Horoscope=attributes\.<key>"/,
    ],
    ['no phone', ['name', 'city'], [], /No column holds the phone/, /--map "name=phone"/],
    ['two phones', ['phone', 'tel'], [], /Both "phone" and "tel" map to phone/, /--ignore "tel"/],
    [
      'the same column twice',
      ['phone', 'city', 'city'],
      [],
      /Both "city" and "city" map to attributes\.city/,
      /--map "city=attributes\.city" --ignore "city"/,
    ],
    ['a map from an unknown column', ['phone'], ['x=name'], /no column "x"/, /phone/],
    ['a map to an unknown field', ['phone', 'x'], ['x=nowhere'], /no field "nowhere"/, /attributes\.city/],
    ['an invalid map', ['phone', 'x'], ['x'], /not "x"/, /--map "City=attributes\.city"/],
  ] as [string, string[], string[], RegExp, RegExp][]) {
    it(`${description} is refused with a fix`, () => {
      assert.throws(
        () => mapHeader(header, map),
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
      mapHeader(
        ['Nr', 'a=b', 'Vorname', 'Nachname', 'x'],
        ['nr=phone', 'a=b=home town', 'Vorname=name', 'Nachname=name'],
        ['x'],
      ).targets,
      ['phone', 'attributes.city', 'name', 'name', undefined],
    )
  })

  it('--ignore leaves out all columns of a name but the one that --map names', () => {
    const header = ['phone', 'Town', 'name', 'Town']
    assert.deepEqual(mapHeader(header, [], ['town']).targets, ['phone', undefined, 'name', undefined])
    assert.deepEqual(mapHeader(header, ['Town=city'], ['Town']).targets, [
      'phone',
      'attributes.city',
      'name',
      undefined,
    ])
    assert.deepEqual(mapHeader(['phone', 'phone'], ['phone=phone'], ['phone']).targets, ['phone', undefined])
  })

  it('the delimiter is the most frequent one in the header, outside quotes, or declared', () => {
    for (const [head, delimiter] of [
      ['a,b', ','],
      ['a;b,c;d', ';'],
      ['a\tb\n,,,,', '\t'],
      ['"a,b,c";d', ';'],
      ['a', ','],
      ['sep=;\r\na,b,c;d', ';'],
    ] as const)
      assert.equal(detectDelimiter(head), delimiter, head)
  })
})

describe('import: cells', () => {
  const parseCells = (header: string[], row: string[], clearEmpty = false) =>
    parseCsvRow(1, row, mapColumns(header, [textField('city')], { map: [], ignore: [] }), clearEmpty)

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
          const marked = escapeFormula(text)
          assert.doesNotMatch(marked, /^[=+\-@\t\r]/)
          if (text.trim() !== '')
            assert.deepEqual(parseCells(['phone', 'city'], ['1', marked]).draft.attributes, { city: text })
        },
      ),
    )
  })

  it('empty cells are omitted, or clear the field with --clear-empty', () => {
    assert.deepEqual(parseCells(['phone', 'name', 'email', 'city', 'tags'], ['1', ' ', '', '', '']).draft, {
      phone: '1',
    })
    assert.deepEqual(
      parseCells(['phone', 'name', 'email', 'city', 'tags'], ['1', ' ', '', '', ''], true).draft,
      {
        phone: '1',
        email: '',
        attributes: { city: '' },
      },
    )
    assert.deepEqual(parseCells(['phone', 'name', 'city'], ['1']).draft, { phone: '1' })
  })

  it('masked or rounded phones and rows with too many cells are rejected locally', () => {
    for (const phone of ['*****0042', "'*****0042", '1.5550100042E+11', '1,55501E10'])
      assert.equal(parseCells(['phone'], [phone]).rejection?.code, 'invalid_input', phone)
    assert.match(
      parseCells(['phone', 'name'], ['1', '2', '3']).rejection!.message,
      /3 cells, but the header has 2/,
    )
  })
})

describe('import: batches', () => {
  const createDrafts = async function* (phones: string[]) {
    let line = 1
    for (const phone of phones) yield { line: ++line, draft: { phone } }
  }
  const batchSizes = async (batches: AsyncIterable<ImportBatch>) => {
    const sizes: number[] = []
    for await (const batch of batches) sizes.push(batch.rows.length)
    return sizes
  }

  it('hold at most 500 rows and stay within the request size limit', async () => {
    assert.deepEqual(
      await batchSizes(createBatches(createDrafts(Array.from({ length: 1201 }, String)))),
      [500, 500, 201],
    )
    assert.deepEqual(
      await batchSizes(createBatches(createDrafts(['x'.repeat(5_000_000), 'x'.repeat(5_000_000), 'x']))),
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
    const concurrent: string[] = []
    const completed: number[] = []
    await sendInOrder(
      createBatches(createDrafts(phones)),
      async ({ index }) => {
        inFlight.add(index)
        concurrent.push([...inFlight].join())
        // Later batches complete first.
        for (let n = index; n < 10; n++) await nextTick()
        inFlight.delete(index)
      },
      ({ index }) => {
        completed.push(index)
      },
    )
    assert.deepEqual(completed, [0, 1, 2, 3, 4, 5])
    assert.ok(concurrent.includes('0,1,2'), concurrent.join(' '))
    // The fifth batch has the phones of the first; the sixth has a phone that cannot be compared.
    assert.ok(
      concurrent.every((indexes) => !/0.*4|4.*5|3.*5/.test(indexes)),
      concurrent.join(' '),
    )
  })
})
