import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { getCountries, getExampleNumber, parsePhoneNumberFromString } from 'libphonenumber-js'
import examples from 'libphonenumber-js/examples.mobile.json'
import { parsePhone } from '../../server/contacts/phone.ts'
import { maskPhone } from '../../server/visibility/numbers.ts'
import { everyDatabase } from '../doors.ts'
import { callAs } from '../calls.ts'
import { makeWorkspace } from '../servers.ts'

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
