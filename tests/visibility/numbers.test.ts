import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { maskFilter } from '../../server/visibility/filters.ts'
import { isNumberOnly, maskNumbers, removeNumbers } from '../../server/visibility/numbers.ts'
import { runs } from '../level.ts'

/** Zeros of scripts whose digits are in order after them. */
const ZEROS = ['0', '٠', '۰', '०', '০', '๐', '០', '０', '𝟎', '𝟘', '𝟶', '𞥐', '🯰']
const INVISIBLE = ['\u200b', '\u200d', '\u2060', '\ufeff', '\u00ad', '\u202a', '\ufe0f', '\u0301', '\u3164']
const SEPARATORS = [
  ' ',
  '\u00a0',
  '\u2009',
  '-',
  '–',
  '－',
  '.',
  '·',
  '/',
  '(',
  ')',
  '_',
  '*',
  ':',
  "'",
  '\n',
]

const toScript = (digit: number, zero: string): string => String.fromCodePoint(zero.codePointAt(0)! + digit)

/** A phone of 8 to 15 digits, each in any script, and what may stand between two of them. */
const written = fc
  .array(
    fc.record({
      digit: fc.nat(9),
      zero: fc.constantFrom(...ZEROS),
      invisible: fc.array(fc.constantFrom(...INVISIBLE), { maxLength: 5 }),
      separators: fc.array(fc.constantFrom(...SEPARATORS), { maxLength: 3 }),
    }),
    { minLength: 8, maxLength: 15 },
  )
  // A date is no phone, and this is none that the mask takes for one.
  .filter((parts) => parts[0]!.digit !== 2 && (parts[0]!.digit !== 1 || parts[1]!.digit !== 9))

const write = (parts: { digit: number; zero: string; invisible: string[]; separators: string[] }[]): string =>
  parts
    .map(({ digit, zero, invisible, separators }, i) =>
      [toScript(digit, zero), ...(i < parts.length - 1 ? [...invisible, ...separators] : [])].join(''),
    )
    .join('')

const countDigits = (text: string): number =>
  Array.from(text).filter((char) => /\p{N}/u.test(char.normalize('NFKC'))).length

/** Letters alone: what stands around the number. */
const word = fc.stringMatching(/^[a-zäßяあ]{0,8}$/u)

describe('Numbers in texts', () => {
  it('are masked in every script and however they are split; the rest of the text stays', () => {
    fc.assert(
      fc.property(written, word, word, (parts, before, after) => {
        const number = write(parts)
        const masked = maskNumbers(`${before} ${number} ${after}`)
        assert.equal(countDigits(masked), Math.min(4, Math.floor(parts.length / 3)), masked)
        // Only digits changed, each into one asterisk.
        const expected = Array.from(number, (char) => (countDigits(char) > 0 ? '#' : char)).join('')
        const shown = Array.from(masked.slice(before.length + 1, masked.length - after.length - 1))
        assert.equal(
          shown
            .map((char, i) => (countDigits(char) > 0 || Array.from(expected)[i] === '#' ? '#' : char))
            .join(''),
          expected,
        )
        assert.ok(masked.startsWith(before) && masked.endsWith(after))
        assert.equal(countDigits(removeNumbers(`${before} ${number} ${after}`)), 0)
        assert.equal(isNumberOnly(number), true)
      }),
      { numRuns: runs(500, 20_000) },
    )
  })

  it('that are too short for a phone, dates and times stay', () => {
    for (const text of [
      '',
      'Studio 54',
      'order 1234, 5 pieces',
      '10 x 20 = 200',
      'closed on 2026-10-01',
      'at 2026-10-01T09:30:00.000Z',
      'at 2026-10-01 09:30, again',
      'Ⅷ and a half',
    ])
      assert.equal(maskNumbers(text), text)
  })

  it('that look like a date but go on are masked', () => {
    for (const text of ['2010-10-01 5550', '1 2010-10-01', '2010-10-01-5550', '+20 2010-10-01'])
      assert.ok(countDigits(maskNumbers(text)) <= 4, maskNumbers(text))
  })

  it('take linear time', () => {
    const started = process.threadCpuUsage()
    for (const text of [
      '1'.repeat(50_000),
      '1 '.repeat(50_000),
      '\u200b1'.repeat(50_000),
      '2026-'.repeat(20_000),
    ])
      maskNumbers(text)
    const { user, system } = process.threadCpuUsage(started)
    assert.ok(user + system < 2_000_000)
  })

  it('are masked in filters by what they are compared with', () => {
    const filter = {
      or: [
        { phoneNumber: { in: ['15550100042', '１５５５-０１０ ００４２', '7'] } },
        { phoneNumber: { contains: '٥٥٥' }, chatappUserId: { regex: '^1[5-9]𝟓' } },
        {
          name: { contains: '1\u200b5550100042' },
          id: { in: ['15550100042'] },
          createdAt: { gte: '2026-10-01' },
        },
        { name: { eq: 'Studio 54' }, lastActivityAt: { gte: '2026-10-01T09:30:00.000Z' } },
        {
          attributes: {
            some: { attributeName: { eq: 'a15550100042' }, stringValue: { startsWith: '15 5' } },
          },
        },
        { attributes: { none: { numberValue: { gt: 15_550_100_042, lt: 99 } } } },
      ],
    }
    assert.deepEqual(maskFilter(filter), {
      or: [
        { phoneNumber: { in: ['********042', '****-*** *０４２', '*'] } },
        { phoneNumber: { contains: '***' }, chatappUserId: { regex: '^*[*-*]*' } },
        {
          name: { contains: '*\u200b*******042' },
          id: { in: ['15550100042'] },
          createdAt: { gte: '2026-10-01' },
        },
        { name: { eq: 'Studio 54' }, lastActivityAt: { gte: '2026-10-01T09:30:00.000Z' } },
        {
          attributes: {
            some: { attributeName: { eq: 'a15550100042' }, stringValue: { startsWith: '** *' } },
          },
        },
        { attributes: { none: { numberValue: { gt: '********042', lt: 99 } } } },
      ],
    })
  })
})
