import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** What a part of a query looks for. */
export type SearchTerm = {
  /** The words in their order. */
  words: readonly string[]
  /** The forms that one word may have; undefined: the words as they are, one after the other. */
  forms: readonly string[] | undefined
  /** Groups of keys (`message_keys`, without the salt): a message has one of each group. */
  keys: readonly (readonly number[])[]
}

/** More words of a phrase, and more terms, are tested in the text alone. */
const MAX_KEYS = 12

type TermRow = {
  words: string[]
  forms: string[]
  of_forms: number[]
  of_words: number[]
  of_pairs: number[]
}

/**
 * Splits a query: phrases in double quotes, words outside of them. The database makes the words, as it does for the
 * index. Signs within a word divide it into words that follow each other.
 */
export const readSearchTerms = async (tx: Db, query: string): Promise<SearchTerm[]> => {
  const parts = Array.from(
    query.matchAll(/["“”„«»]([^"“”„«»]*)["“”„«»]?|[^\s"“”„«»]+/gu),
    ([whole, phrase]) => ({
      text: phrase ?? whole,
      quoted: phrase !== undefined,
    }),
  )
  const { rows } = await sql<TermRow>`
    select t.words, f.forms, array(select message_hash(form) from unnest(f.forms) as form) as of_forms,
      array(select message_hash(word) from unnest(t.words) with ordinality as w (word, n) order by n) as of_words,
      array(select message_pair_hash(a || ' ' || b) from unnest(t.words, t.words[2:]) with ordinality as p (a, b, n)
        where b is not null order by n) as of_pairs
    from unnest(${parts.map(({ text }) => text)}::text[]) with ordinality as u (part, n)
      cross join lateral (select string_to_array(nullif(btrim(message_words(u.part)), ''), ' ') as words) as t
      cross join lateral (select case when cardinality(t.words) = 1 then message_word_forms(t.words[1]) else '{}' end
        as forms) as f
    order by u.n`.execute(tx)
  return rows.flatMap(({ words, forms, of_forms, of_words, of_pairs }, n) => {
    if (words === null) return []
    const isWord = words.length === 1 && !parts[n]!.quoted
    return {
      words,
      forms: isWord ? forms : undefined,
      keys: isWord ? [of_forms] : [...of_pairs, ...of_words].slice(0, MAX_KEYS).map((key) => [key]),
    }
  })
}

export type KeyFilters = {
  channels: readonly string[] | undefined
  staffId: string | undefined
  direction: 'inbound' | 'outbound' | 'note' | undefined
}

/** Returns groups of keys of what else is asked: a message has one of each group. */
export const readFilterKeys = async (
  tx: Db,
  { channels, staffId, direction }: KeyFilters,
): Promise<number[][]> => {
  const groups = [
    channels?.map((id) => `#c${id}`),
    staffId === undefined ? undefined : [`#s${staffId}`],
    direction === undefined ? undefined : [`#${direction}`],
  ].filter((group) => group !== undefined)
  if (groups.length === 0) return []
  const { rows } = await sql<{ key: number }>`
    select message_hash(u.word) as key from unnest(${groups.flat()}::text[]) with ordinality as u (word, n)
    order by u.n`.execute(tx)
  let at = 0
  return groups.map((group) => rows.slice(at, (at += group.length)).map(({ key }) => key))
}

/** Months since the year 0, in UTC, as in the keys. */
export const toMonth = (time: string): number => {
  const at = new Date(time)
  return at.getUTCFullYear() * 12 + at.getUTCMonth() + 1
}

/** The same as `message_salt` in the database. */
export const toSalt = (workspaceId: string, month: number): number =>
  Number((((BigInt(workspaceId) % 100_000n) * 30_000n + BigInt(month)) * 2_654_435_761n) % 4_294_967_296n) -
  2_147_483_648
