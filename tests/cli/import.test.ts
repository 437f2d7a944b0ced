import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'
import { countRows, listContacts, useImportFiles } from './import-files.ts'

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
