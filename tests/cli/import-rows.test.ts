import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import fc from 'fast-check'
import { type ImportField, mapColumns } from '../../cli/import/columns.ts'
import { detectDelimiter } from '../../cli/import/reader.ts'
import { joinNames } from '../../catalog/contacts/export-lines.ts'
import { escapeFormula } from '../../catalog/csv-line.ts'
import { parseCsvRow, splitNames } from '../../cli/import/rows.ts'
import { createBatches, type ImportBatch, sendInOrder } from '../../cli/import/send.ts'

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
