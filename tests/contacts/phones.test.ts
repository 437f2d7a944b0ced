import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { getCountries, getExampleNumber, parsePhoneNumberFromString } from 'libphonenumber-js'
import examples from 'libphonenumber-js/examples.mobile.json'
import { parsePhone, parsePhoneLine } from '../../server/domains/contacts/phone.ts'
import { maskPhone } from '../../server/visibility/numbers.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { callAs } from '../calls.ts'
import { makeWorkspace } from '../servers.ts'
import { lineRules, listSpellings, toPhoneLine } from '../../server/domains/contacts/phone-lines.ts'
import { phonePairs } from './phone-pairs.ts'

/** A valid example number of each country, with its country code and national number. */
const numbers = getCountries().map((country) => getExampleNumber(country, examples)!)
const number = fc.constantFrom(...numbers)

const parseDigits = (text: string): string => {
  const parsed = parsePhone(text)
  assert.ok('digits' in parsed, `${JSON.stringify(text)} ${'error' in parsed ? parsed.error : ''}`)
  return parsed.digits
}
const assertInvalid = (text: string): void => assert.ok('error' in parsePhone(text), JSON.stringify(text))

/** The digit zero of several scripts. */
const zeros = [
  '٠',
  '۰',
  '߀',
  '०',
  '০',
  '੦',
  '૦',
  '୦',
  '௦',
  '౦',
  '೦',
  '൦',
  '๐',
  '໐',
  '༠',
  '၀',
  '០',
  '᠐',
  '０',
  '𝟎',
  '𝟘',
]
const toScript = (text: string, zero: string): string =>
  text.replaceAll(/\d/g, (d) => String.fromCodePoint(zero.codePointAt(0)! + Number(d)))

describe('Phone numbers', () => {
  it('every international form of a number parses to the same digits, for every country', () => {
    assert.ok(numbers.length > 200, `${numbers.length} countries`)
    const prefix = fc.constantFrom('+', '00', '', '+ ', 'tel:+', ' +', '(+')
    const separators = fc.array(fc.constantFrom('', '', ' ', '-', '.', '\u00a0', '\u2013', ' - '), {
      minLength: 15,
      maxLength: 15,
    })
    fc.assert(
      fc.property(number, prefix, separators, (example, leading, gaps) => {
        const digits = example.number.slice(1)
        const national = example.nationalNumber.toString()
        const separated = [...national].map((d, i) => (i === 0 ? d : `${gaps[i % gaps.length]}${d}`)).join('')
        const country = `${example.countryCallingCode}${leading === '(+' ? ')' : ''}`
        assert.equal(parseDigits(`${leading}${country} ${separated}`), digits)
      }),
      { numRuns: 500 },
    )
  })

  it('numbers of country code 1 that are not parsed are those that the parser returns unchanged', () => {
    for (let area = 200; area < 1000; area++)
      for (const rest of ['0000000', '1234567', '5550100', '9999999']) {
        const number = `+1${area}${rest}`
        const parsed = parsePhoneNumberFromString(number, { extract: false })
        assert.ok(parsed?.isPossible() && parsed.number === number, number)
        assert.equal(parseDigits(number), number.slice(1))
        assert.equal(parseDigits(number.slice(1)), number.slice(1))
      }
    for (const text of ['+11234567890', '+1234567890', '+123456789012']) {
      const parsed = parsePhoneNumberFromString(text, { extract: false })
      assert.equal('digits' in parsePhone(text), parsed?.isPossible() === true, text)
    }
  })

  it('the usual international spelling of each country is parsed', () => {
    for (const example of numbers)
      for (const text of [example.formatInternational(), example.number, example.getURI()]) {
        assert.equal(parseDigits(text), example.number.slice(1), text)
      }
  })

  it('digits of every script are parsed', () => {
    fc.assert(
      fc.property(
        number,
        fc.constantFrom(...zeros),
        fc.constantFrom('+', '00', ''),
        (example, zero, prefix) => {
          const text = `${prefix}${example.number.slice(1)}`
          assert.equal(parseDigits(toScript(text, zero)), example.number.slice(1))
        },
      ),
      { numRuns: 500 },
    )
  })

  it('parsing the result again returns the same digits', () => {
    fc.assert(
      fc.property(number, (example) => {
        const digits = parseDigits(example.number)
        assert.equal(parseDigits(digits), digits)
        assert.equal(parseDigits(`+${digits}`), digits)
      }),
      { numRuns: 500 },
    )
    // Parsing is idempotent for every accepted text.
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'+0123456789 ()-.x'), minLength: 3, maxLength: 32 }),
        (text) => {
          const parsed = parsePhone(text)
          if (!('digits' in parsed)) return
          assert.match(parsed.digits, /^[1-9]\d{3,14}$/)
          assert.deepEqual(parsePhone(parsed.digits), parsed)
        },
      ),
      { numRuns: 20_000 },
    )
  })

  it('numbers that begin with a single 0 are rejected as local, in every script', () => {
    fc.assert(
      fc.property(
        number,
        fc.constantFrom('0', ...zeros),
        fc.constantFrom('', ' ', '(', '( '),
        (example, zero, leading) => {
          const national = example.nationalNumber.toString().replace(/^0+/, '')
          const parsed = parsePhone(`${leading}${toScript(`0${national}`, zero)}`)
          assert.ok('error' in parsed && parsed.error.includes('local'), `${leading}${zero} ${national}`)
        },
      ),
      { numRuns: 300 },
    )
  })

  it('extensions, the national 0 and invisible marks are removed', () => {
    for (const text of [
      '+1 555 010 0042 ext 5',
      '+1 555 010 0042 x5',
      '+1 555 010 0042;ext=7',
      '\u202a+1 555 010 0042\u202c',
      '\u200e+15550100042',
      '+1 1 555 010 0042',
    ]) {
      assert.equal(parseDigits(text), '15550100042', text)
    }
    assert.equal(parseDigits('+49 (0)30 1234567'), '49301234567')
    // Italian numbers keep their leading 0.
    assert.equal(parseDigits('+39 06 1234567'), '39061234567')
  })

  it('text that is no phone number is rejected', () => {
    for (const text of [
      '',
      '   ',
      '+',
      '00',
      'hello',
      '+1',
      '+1 555',
      '+999 12345678',
      '+1 555 010 0042 abc',
      'abc +15550100042',
      '++15550100042',
      `+1${'5'.repeat(30)}`,
      '+1 555 CALLNOW0',
      '+6208691531344129172',
      '½',
      '+١',
    ])
      assertInvalid(text)
  })

  it('masking hides at least two thirds of the digits', () => {
    fc.assert(
      fc.property(number, (example) => {
        const digits = example.number.slice(1)
        const masked = maskPhone(digits)
        assert.equal(masked.length, digits.length)
        assert.match(masked, /^\*+\d{0,4}$/)
        assert.ok(digits.endsWith(masked.replaceAll('*', '')))
        assert.ok(masked.replaceAll('*', '').length <= digits.length / 3)
      }),
    )
  })
})

everyDatabase('Phone numbers of contacts', (server) => {
  it('input has 3 to 32 characters, and one number in any form is one contact', async () => {
    const { owner } = await makeWorkspace(server())
    const call = callAs(server(), owner.key)
    for (const [phone, code] of [
      ['+1', 'too_short'],
      [`+1 555 010 0042${' '.repeat(17)}x`, 'too_long'],
      ['12345', 'invalid_phone'],
      ['030 1234567', 'invalid_phone'],
    ] as const) {
      const { status, body } = await call('crm_upsert_contact', { phone })
      assert.equal(status, 400, phone)
      assert.deepEqual([body.errors[0].pointer, body.errors[0].code], ['#/phone', code], phone)
      assert.ok(body.errors[0].fix)
    }
    const first = await call('crm_upsert_contact', { phone: `+1${' '.repeat(20)}5550100042` })
    assert.equal(first.body.contact.phone, '15550100042')
    for (const phone of [
      '15550100042',
      '0015550100042',
      '+1 (555) 010-0042',
      '+١٥٥٥٠١٠٠٠٤٢',
      'tel:+1-555-010-0042',
    ]) {
      const again = await call('crm_upsert_contact', { phone })
      assert.deepEqual([again.body.action, again.body.id], ['unchanged', first.body.id], phone)
    }
  })
})

const parseLine = (text: string) => {
  const line = parsePhoneLine(text)
  assert.ok('key' in line, `${text}: ${'error' in line ? line.error : ''}`)
  return line
}

const digits = (count: number): fc.Arbitrary<string> =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: count, maxLength: count }).map((d) => d.join(''))

/** Digits of the countries that have rules, of which many have an old or a present form. */
const ruleNumber = fc
  .constantFrom('55', '521', '52', '54', '549', '225', '229', '237', '57', '84', '841', '8418')
  .chain((code) => fc.integer({ min: 8, max: 11 }).chain((n) => digits(n).map((rest) => code + rest)))

/** Spellings of one line each, in which people and the messaging app write it. */
const spelledLines = [
  ['+55 11 98765-4321', '+55 (11) 8765-4321', '551187654321', '5511987654321'],
  ['+52 55 1234 5678', '5215512345678', '+52 044 55 1234 5678', '525512345678'],
  ['+54 11 2345-6789', '5491123456789', '+54 11 15 2345 6789', '+54 9 11 15 2345-6789'],
  ['+225 07 12 34 56', '+225 07 07 12 34 56', '22507123456'],
  ['+229 97 12 34 56', '+229 01 97 12 34 56'],
  ['+84 120 456 7890', '+84 70 456 7890'],
]

describe('Phone lines', () => {
  it('pairs of numbers are one line, or two, as their sources say', () => {
    const pairs = phonePairs.flatMap(({ same, different }) => [...same, ...different])
    assert.ok(pairs.length >= 200, `${pairs.length} pairs`)
    for (const { source, same, different } of phonePairs) {
      for (const [a, b] of same) assert.equal(parseLine(a).key, parseLine(b).key, `${a} = ${b}: ${source}`)
      for (const [a, b] of different)
        assert.notEqual(parseLine(a).key, parseLine(b).key, `${a} is not ${b}: ${source}`)
    }
  })

  it('the number that is shown is a spelling of its line, and stays itself', () => {
    fc.assert(
      fc.property(ruleNumber, (number) => {
        const { phone, key } = toPhoneLine(number)
        assert.deepEqual(toPhoneLine(key), { phone: key, key })
        assert.deepEqual(toPhoneLine(phone), { phone, key })
        assert.ok(listSpellings(number).includes(phone))
        assert.ok(listSpellings(number).includes(number))
      }),
      { numRuns: 20_000 },
    )
  })

  it('every spelling of a line has the same key, and lists the same spellings', () => {
    fc.assert(
      fc.property(ruleNumber, (number) => {
        const spellings = listSpellings(number)
        for (const spelling of spellings) {
          assert.equal(toPhoneLine(spelling).key, spellings[0]!)
          assert.deepEqual(listSpellings(spelling), spellings)
        }
      }),
      { numRuns: 20_000 },
    )
  })

  it('no number has the old form of two rules, and no present number has an old form', () => {
    fc.assert(
      fc.property(ruleNumber, (number) => {
        const matching = lineRules.filter(({ old }) => old.test(number))
        assert.ok(matching.length <= 1, number)
        if (lineRules.some(({ current }) => current.test(number))) assert.equal(matching.length, 0, number)
      }),
      { numRuns: 20_000 },
    )
  })

  it('numbers of countries without a rule are their own lines', () => {
    for (const number of ['15550100042', '4915112345678', '447911123456', '39061234567', '97259912345'])
      assert.deepEqual(toPhoneLine(number), { phone: number, key: number })
  })

  it('the number as people dial it is shown; in Argentina, where both can be dialled, the one given', () => {
    for (const [text, phone] of [
      ['551187654321', '5511987654321'],
      ['5215512345678', '525512345678'],
      ['541123456789', '541123456789'],
      ['5491123456789', '5491123456789'],
      ['22507123456', '2250707123456'],
      ['22997123456', '2290197123456'],
      ['5712345678', '576012345678'],
    ] as const)
      assert.equal(parseLine(text).phone, phone)
  })
})

everyDoor('One line, one contact', (test) => {
  test('an upsert finds the contact by any spelling of its phone', async ({ call }) => {
    for (const [first, ...others] of spelledLines) {
      const created = await call('crm_upsert_contact', { phone: first, name: 'Ada' })
      assert.equal(created.body.action, 'created', first!)
      for (const phone of others) {
        const again = await call('crm_upsert_contact', { phone })
        assert.deepEqual(
          [again.body.action, again.body.id, again.body.contact.phone],
          ['unchanged', created.body.id, created.body.contact.phone],
          phone,
        )
        const dry = await call('crm_upsert_contact', { phone, name: 'Bo', dry_run: true })
        assert.deepEqual([dry.body.action, dry.body.id], ['updated', created.body.id], phone)
      }
    }
  })

  test('rows of an import that are one line are one contact, new or existing', async ({ call }) => {
    const known = await call('crm_upsert_contact', { phone: '+52 55 1234 5678' })
    const { body } = await call('crm_import_contacts', {
      rows: [
        { phone: '+55 11 8765-4321', name: 'Ana' },
        { phone: '5215512345678', name: 'Eva' },
        { phone: '+55 11 98765-4321', name: 'Ana B.' },
        { phone: '+54 11 2345-6789' },
        { phone: '+54 9 11 2345-6789' },
      ],
    })
    assert.deepEqual(
      body.results.map(({ action }: { action: string }) => action),
      ['created', 'updated', 'updated', 'created', 'unchanged'],
    )
    const ids = body.results.map(({ id }: { id: string }) => id)
    assert.equal(new Set(ids).size, 3)
    assert.equal(ids[1], known.body.id)
    const contact = await call('crm_get_contact', { contact_id: ids[0] })
    assert.deepEqual([contact.body.phone, contact.body.name], ['5511987654321', 'Ana B.'])
    const list = await call('crm_search_contacts', { limit: 10 })
    assert.equal(list.body.total, 3)
  })

  test('a filter finds a whole phone number in any spelling; parts match the number that is shown', async ({
    call,
  }) => {
    const { body: created } = await call('crm_upsert_contact', { phone: '+55 11 8765-4321' })
    await call('crm_upsert_contact', { phone: '+55 11 4321-8765' })
    const count = async (filter: unknown) => (await call('crm_count_contacts', { filter })).body.count
    const search = async (filter: unknown) => {
      const { body } = await call('crm_search_contacts', { filter })
      return body.data.map(({ id }: { id: string }) => id)
    }
    for (const phone of ['551187654321', '+55 11 98765-4321']) {
      assert.deepEqual(await search({ phoneNumber: { eq: phone } }), [created.id])
      assert.deepEqual(await search({ phoneNumber: { in: [phone, '15550100042'] } }), [created.id])
      assert.equal(await count({ phoneNumber: { ne: phone } }), 1)
      assert.equal(await count({ phoneNumber: { notIn: [phone] } }), 1)
    }
    assert.equal(await count({ phoneNumber: { startsWith: '5511987' } }), 1)
    assert.equal(await count({ phoneNumber: { startsWith: '551187' } }), 0)
    assert.equal(await count({ phoneNumber: { eq: '' } }), 0)
  })
})

everyDatabase('Phone lines of contacts', (server) => {
  it('upserts by all spellings of a line at once make one contact', async () => {
    const { owner } = await makeWorkspace(server())
    const call = callAs(server(), owner.key)
    for (const spellings of spelledLines) {
      const replies = await Promise.all(
        [...spellings, ...spellings.toReversed()].map((phone) => call('crm_upsert_contact', { phone })),
      )
      assert.deepEqual(
        replies.map(({ status }) => status),
        replies.map(() => 200),
      )
      assert.equal(new Set(replies.map(({ body }) => body.id)).size, 1, spellings[0]!)
      assert.equal(replies.filter(({ body }) => body.action === 'created').length, 1, spellings[0]!)
    }
    const list = await call('crm_search_contacts', { limit: 100 })
    assert.equal(list.body.total, spelledLines.length)
    assert.equal(list.body.data.length, spelledLines.length)
  })

  it('imports and upserts of the same lines at once make one contact for each', async () => {
    const { owner } = await makeWorkspace(server())
    const call = callAs(server(), owner.key)
    const rows = spelledLines.flatMap((spellings) => spellings.map((phone) => ({ phone })))
    const replies = await Promise.all([
      call('crm_import_contacts', { rows }),
      call('crm_import_contacts', { rows: rows.toReversed() }),
      ...spelledLines.map((spellings) => call('crm_upsert_contact', { phone: spellings[1]! })),
    ])
    for (const { status, body } of replies) assert.equal(status, 200, JSON.stringify(body))
    const list = await call('crm_search_contacts', { limit: 100 })
    assert.equal(list.body.data.length, spelledLines.length)
    assert.equal(list.body.total, spelledLines.length)
  })

  it('another spelling of a contact needs no room under the contact limit', async () => {
    const { owner } = await makeWorkspace(server(), { contact_limit: 1 })
    const call = callAs(server(), owner.key)
    assert.equal((await call('crm_upsert_contact', { phone: '+55 11 98765-4321' })).status, 200)
    assert.equal((await call('crm_upsert_contact', { phone: '+55 11 8765-4321' })).body.action, 'unchanged')
    assert.equal((await call('crm_upsert_contact', { phone: '+55 11 4321-8765' })).status, 403)
    const { body } = await call('crm_import_contacts', {
      rows: [{ phone: '551187654321', name: 'Ana' }, { phone: '551143218765' }],
    })
    assert.deepEqual([body.updated, body.failed], [1, 1])
  })

  it('staff from whom phones are hidden name a line once a day, in whichever spelling', async () => {
    const workspace = await makeWorkspace(server())
    const { key } = await workspace.staff({ role: 'agent', hide_phone_numbers: true })
    const call = callAs(server(), key)
    for (const phone of spelledLines[0]!) {
      assert.equal((await call('crm_upsert_contact', { phone })).status, 200)
      // A dry run answers as for a number that no contact has, in every spelling.
      const { body } = await call('crm_upsert_contact', { phone, dry_run: true })
      assert.deepEqual([body.action, body.id, body.warnings.length], ['created', null, 1])
      assert.equal(body.contact.phone, '*********4321')
    }
    const { phones } = await server()
      .db.selectFrom('phone_budgets')
      .select('phones')
      .where('workspace_id', '=', workspace.id)
      .executeTakeFirstOrThrow()
    assert.deepEqual([...phones], ['5511987654321'])
  })
})
