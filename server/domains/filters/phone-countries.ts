import { type CountryCode, getCountries, getCountryCallingCode } from 'libphonenumber-js'
import type { ContactFilter, IdTest } from '../../../storage/filters/filter.ts'

/*
 * The country of a phone is that of its calling code. Where countries share one, it is that of the area code, and the
 * country that is not named here for the others. A table of prefixes, so that an index of phones finds the contacts of
 * a country: the patterns of the phone library tell more, but no index knows them.
 */

type SharedCode = { main: CountryCode; others: Partial<Record<CountryCode, string>> }

/** By calling code. `others`: their prefixes within it. */
const SHARED: Readonly<Record<string, SharedCode>> = {
  1: {
    main: 'US',
    others: {
      AG: '268',
      AI: '264',
      AS: '684',
      BB: '246',
      BM: '441',
      BS: '242',
      CA:
        '204 226 236 249 250 257 263 273 289 306 343 354 365 367 368 382 403 416 418 428 431 437 438 450 468 474 ' +
        '506 514 519 548 579 581 584 587 600 604 613 622 633 639 647 672 683 705 709 742 753 778 780 782 807 819 ' +
        '825 867 873 879 902 905 942',
      DM: '767',
      DO: '809 829 849',
      GD: '473',
      GU: '671',
      JM: '658 876',
      KN: '869',
      KY: '345',
      LC: '758',
      MP: '670',
      MS: '664',
      PR: '787 939',
      SX: '721',
      TC: '649',
      TT: '868',
      VC: '784',
      VG: '284',
      VI: '340',
    },
  },
  7: { main: 'RU', others: { KZ: '7' } },
  39: { main: 'IT', others: { VA: '06698' } },
  44: {
    main: 'GB',
    others: {
      GG: '1481 7781 7839 79111 79117',
      IM: '1624 74576 7524 7624',
      JE: '1534 7509 77003 77007 77008 7797 7829 7937',
    },
  },
  47: { main: 'NO', others: { SJ: '79' } },
  61: { main: 'AU', others: { CC: '89162', CX: '89164' } },
  212: { main: 'MA', others: { EH: '5288 5289' } },
  262: { main: 'RE', others: { YT: '2689 269 639' } },
  290: { main: 'SH', others: { TA: '8' } },
  358: { main: 'FI', others: { AX: '18' } },
  // The numbers of Saint Barthélemy and Saint Martin are among those of Guadeloupe.
  590: { main: 'GP', others: {} },
  599: { main: 'CW', others: { BQ: '3 4 7' } },
}

type Prefixes = { any: readonly string[]; none: readonly string[] }

const prefixesByCountry: ReadonlyMap<string, Prefixes> = new Map(
  [...Map.groupBy(getCountries(), (country): string => getCountryCallingCode(country))].flatMap(
    ([code, members]): [string, Prefixes][] => {
      const shared = SHARED[code]
      if (!shared) return [[members[0]!, { any: [code], none: [] }]]
      const others = Object.entries(shared.others).map(
        ([country, areas]) => [country, areas.split(' ').map((area) => code + area)] as const,
      )
      return [
        [shared.main, { any: [code], none: others.flatMap(([, areas]) => areas) }],
        ...others.map(([country, areas]): [string, Prefixes] => [country, { any: areas, none: [] }]),
      ]
    },
  ),
)

/** ISO 3166 codes of countries that phones can be of. */
export const countries: readonly string[] = [...prefixesByCountry.keys()].toSorted()

/** All phones but those of no country, such as satellite phones. */
const ofSomeCountry: ContactFilter = {
  kind: 'phonePrefix',
  any: [...new Set(getCountries().map((country): string => getCountryCallingCode(country)))],
  none: [],
}

/** The countries that have prefixes to themselves are one condition. */
const ofCountries = (codes: readonly string[]): ContactFilter => {
  const all = codes.map((code) => prefixesByCountry.get(code)!)
  const [whole, parts] = [
    all.filter(({ none }) => none.length === 0),
    all.filter(({ none }) => none.length > 0),
  ]
  const of = [
    ...(whole.length > 0 ? [{ any: whole.flatMap(({ any }) => any), none: [] }] : []),
    ...parts,
  ].map((prefixes): ContactFilter => ({ kind: 'phonePrefix', ...prefixes }))
  return of.length === 1 ? of[0]! : { kind: 'or', of }
}

/** Returns a test of the country that the phone of a contact is of. */
export const toCountryFilter = (test: IdTest): ContactFilter => {
  if (test.op === 'isNull') return test.value ? { kind: 'not', of: ofSomeCountry } : ofSomeCountry
  const found = ofCountries('values' in test ? test.values : [test.value])
  return test.op === 'eq' || test.op === 'in'
    ? found
    : { kind: 'and', of: [ofSomeCountry, { kind: 'not', of: found }] }
}

const countryByPrefix: ReadonlyMap<string, string> = new Map(
  [...prefixesByCountry].flatMap(([country, { any }]) =>
    any.map((prefix): [string, string] => [prefix, country]),
  ),
)
const MAX_PREFIX = Math.max(...[...countryByPrefix.keys()].map((prefix) => prefix.length))

/** Returns the country of a phone, digits with the country code; null for one of no country. */
export const findCountry = (phone: string): string | null => {
  for (let length = Math.min(MAX_PREFIX, phone.length); length > 0; length--) {
    const country = countryByPrefix.get(phone.slice(0, length))
    if (country !== undefined) return country
  }
  return null
}
