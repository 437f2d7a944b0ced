/*
 * Spellings of one line. A number may be written in ways that are all valid digits with a country code: the
 * messaging app kept the identities that it gave before a country changed its numbers, and people write what
 * they dialled at home. A contact is found by any of them.
 *
 * A rule is here only where every number of the old form has exactly one number of the present form, by a
 * published plan. Where a number of the old form may be another line, there is no rule: `docs/phones.md`.
 */

/**
 * Two spellings of a line. `old` and `current` match digits without `+`; each group is what both have in
 * common, so that one is written as the other. `asGiven`: both can be dialled, so that the one that was given
 * is shown; otherwise the current one is.
 */
type LineRule = {
  country: string
  old: RegExp
  toOld: string
  current: RegExp
  toCurrent: string
  asGiven?: true
  source: string
}

/** A prefix that was replaced by another, before the same rest. Both are parts of regular expressions. */
const replaced = (
  country: string,
  code: string,
  oldPrefix: string,
  currentPrefix: string,
  rest: string,
  source: string,
): LineRule => ({
  country,
  old: new RegExp(`^${code}${oldPrefix}(${rest})$`),
  toOld: `${code}${oldPrefix}$1`,
  current: new RegExp(`^${code}${currentPrefix}(${rest})$`),
  toCurrent: `${code}${currentPrefix}$1`,
  source,
})

/** Prefixes of 11-digit mobile numbers until 2018, and what replaced each. */
const VIETNAM = {
  120: '70',
  121: '79',
  122: '77',
  126: '76',
  128: '78',
  123: '83',
  124: '84',
  125: '85',
  127: '81',
  129: '82',
  162: '32',
  163: '33',
  164: '34',
  165: '35',
  166: '36',
  167: '37',
  168: '38',
  169: '39',
  186: '56',
  188: '58',
  199: '59',
}

export const lineRules: readonly LineRule[] = [
  {
    country: 'BR',
    // Landlines begin with 2 to 5 and have eight digits: 9 4321-8765 is no spelling of 4321-8765.
    old: /^55([1-9]{2})([6-9]\d{7})$/,
    toOld: '55$1$2',
    current: /^55([1-9]{2})9([6-9]\d{7})$/,
    toCurrent: '55$19$2',
    source: 'Anatel, resolution 553/2010: mobile numbers got a ninth digit, 9, region by region until 2016.',
  },
  {
    country: 'MX',
    old: /^521([2-9]\d{9})$/,
    toOld: '521$1',
    current: /^52([2-9]\d{9})$/,
    toCurrent: '52$1',
    source: 'IFT, national numbering plan: since 3 August 2019 mobiles are dialled without the 1.',
  },
  {
    country: 'AR',
    // A mobile is dialled with 9 from abroad and a landline without. They share one plan of ten digits, in
    // which a number is one line: a mobile that calls a mobile leaves out both prefixes.
    old: /^54([1-3]\d{9})$/,
    toOld: '54$1',
    current: /^549([1-3]\d{9})$/,
    toCurrent: '549$1',
    asGiven: true,
    source:
      'ENACOM, national numbering plan (resolution SC 46/1997): numbers are ten digits, of one service.',
  },
  // Orange, MTN and Moov were told apart by the second digit. Operators that closed before are left out.
  ...(
    [
      ['01', '(?:0[1-3]|[457][0-3])\\d{6}'],
      ['05', '[0456789][4-6]\\d{6}'],
      ['07', '(?:[04578][7-9]|6[78]|9[78])\\d{6}'],
    ] as const
  ).map(([prefix, rest]) =>
    replaced('CI', '225', '', prefix, rest, 'ARTCI: from 8 to 10 digits on 31 January 2021, by operator.'),
  ),
  replaced('BJ', '229', '', '01', '[2-9]\\d{7}', 'ARCEP Benin: 01 before every number on 30 November 2024.'),
  replaced('CM', '237', '', '6', '[79]\\d{7}', 'ART Cameroon: 6 before mobile numbers on 21 November 2014.'),
  ...Object.entries(VIETNAM).map(([old, current]) =>
    replaced('VN', '84', old, current, '\\d{7}', 'MIC Vietnam: 11-digit mobile numbers replaced in 2018.'),
  ),
  replaced(
    'CO',
    '57',
    '',
    '60',
    '[124-8]\\d{7}',
    'CRC Colombia, resolution 5826/2019: 60 before the area code of landlines on 1 September 2021.',
  ),
]

/** Ways to write a number that no parser of today's plan takes, and what they stand for. */
const habits: readonly (readonly [RegExp, string])[] = [
  // Mexico: dialled at home before a mobile number (044, 045) or a long-distance one (01) until 2019.
  [/^52(?:01|044|045)([2-9]\d{9})$/, '52$1'],
  // Argentina: 15 marks a mobile at home, 9 from abroad; many write both. Without the 9, the parser drops 15.
  [/^549([1-3]\d{11})$/, '54$1'],
]

/** Returns digits as today's numbering plan writes them, where they are of a known older or local form. */
export const modernize = (digits: string): string => {
  const rule = lineRules.find(({ old, asGiven }) => asGiven !== true && old.test(digits))
  if (rule) return digits.replace(rule.old, rule.toCurrent)
  const habit = habits.find(([form]) => form.test(digits))
  return habit ? digits.replace(...habit) : digits
}

/**
 * A phone line. `phone`: its number, digits with the country code, as it is stored and shown. `key`: the same
 * for all spellings of the line.
 */
export type PhoneLine = { phone: string; key: string }

/** Matches every form of every rule: most numbers have none, which one test tells. */
const anyForm = new RegExp(lineRules.flatMap(({ old, current }) => [old.source, current.source]).join('|'))

/** Returns the line of a number in any of its spellings. */
export const toPhoneLine = (digits: string): PhoneLine => {
  if (!anyForm.test(digits)) return { phone: digits, key: digits }
  const rule = lineRules.find(({ old }) => old.test(digits))
  if (!rule) return { phone: digits, key: digits }
  const key = digits.replace(rule.old, rule.toCurrent)
  return { phone: rule.asGiven ? digits : key, key }
}

/** Returns all spellings of a line, the present one first. */
export const listSpellings = (digits: string): string[] => {
  if (!anyForm.test(digits)) return [digits]
  const { key } = toPhoneLine(digits)
  return [
    key,
    ...lineRules.flatMap(({ current, toOld }) => (current.test(key) ? key.replace(current, toOld) : [])),
  ]
}
