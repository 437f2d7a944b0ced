import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countLinkCharacters } from '../../catalog/short-links.ts'

describe("Length of a short link's message", () => {
  const emoji = [
    '😀',
    '❤️',
    '👍🏽',
    '🇩🇪',
    '1️⃣',
    '#⃣',
    '👨‍👩‍👧‍👦',
    '👩🏽‍❤️‍💋‍👩🏽',
    '🏳️‍🌈',
    '🏴󠁧󠁢󠁷󠁬󠁳󠁿',
    '❤‍🔥',
    '🧑‍🦰',
    '☎️',
    '©️',
    '🏴‍☠️',
    '👁️‍🗨️',
    '🏽',
    '🕵🏻‍♀️',
    '🫱🏻‍🫲🏿',
  ]
  const plain = [
    'a',
    'é',
    'e\u0301',
    'ß',
    '中',
    '한',
    '7',
    '#',
    '*',
    '©',
    '™',
    '☎',
    '𝒳',
    'नि',
    '\n',
    ' ',
    '٧',
    '€',
    '→',
  ]

  it('counts an emoji sequence as two', () => {
    for (const text of emoji) assert.equal(countLinkCharacters(text), 2, text)
  })

  it('counts other text by its characters', () => {
    for (const text of plain) assert.equal(countLinkCharacters(text), [...text].length, text)
  })

  it('the length of a text is the sum of its parts', () => {
    const part = fc.oneof(
      fc.constantFrom(...emoji).map((text) => ({ text, count: 2 })),
      fc.constantFrom(...plain).map((text) => ({ text, count: [...text].length })),
    )
    // The separator keeps parts from joining into one emoji, such as a skin tone after a hand.
    fc.assert(
      fc.property(fc.array(part, { maxLength: 80 }), (parts) => {
        assert.equal(
          countLinkCharacters(parts.map(({ text }) => text).join('.')),
          parts.reduce((n, { count }) => n + count, 0) + Math.max(0, parts.length - 1),
        )
      }),
      { numRuns: 300 },
    )
  })

  it('is at least 1 and at most two for each code point', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        const length = countLinkCharacters(text)
        assert.ok(length <= 2 * [...text].length && (text === '' || length >= 1), JSON.stringify(text))
      }),
      { numRuns: 2000 },
    )
  })

  it('combining marks after an emoji are counted', () => {
    assert.equal(countLinkCharacters(`😀${'\u0301'.repeat(200)}`), 202)
  })
})
