import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { CUSTOM_PLAN } from '../client/driver.ts'
import { allOf, type Sql } from './comparisons.ts'
import { filterStrategy } from './strategy.ts'

/**
 * `all`: the contacts of the workspace. Of those in the sample (`seen`), how many match, and how many meet
 * each of some parts of the filter.
 */
export type Sample = {
  all: number
  seen: number
  matched: number
  parts: readonly number[]
  /** The places of the sample, the newest first: when the first contact there was created, and how many match. */
  places: readonly { createdAt: string; matched: number }[]
}

type Sampled = {
  workspaceId: string
  readsValues: boolean
  /** Tests of a contact `c` with its values `f`, each counted by itself. */
  parts: readonly Sql[]
  /** What a match meets beside all of these. */
  rest: Sql
}

/**
 * Tests a thousand contacts in forty places that are spread evenly over the ids. The values of a place are
 * read as a range: as many rows hold those of all its contacts, since not every contact has values. `offset 0`
 * keeps the planner from testing the parts again for those that meet all.
 */
export const sampleContacts = async (
  tx: Db,
  { workspaceId, readsValues, parts, rest }: Sampled,
  size: number = filterStrategy.sampleContacts,
): Promise<Sample> => {
  const places = filterStrategy.samplePlaces
  const perPlace = sql.lit(Math.ceil(size / places))
  const name = (n: number) => sql.raw(`part_${n}`)
  const start = sql`ends.first + (ends.last - ends.first) / ${sql.lit(places)} * place`
  const values = readsValues
    ? sql`left join (
        select contact_id, attrs from contact_facts
        where workspace_id = ${workspaceId} and contact_id >= ${start}
        order by contact_id limit ${perPlace}) as f on f.contact_id = c.id`
    : sql``
  const tested = sql.join([
    sql`c.*`,
    readsValues ? sql`f.attrs` : sql`null::jsonb as attrs`,
    ...parts.map((part, n) => sql`(${part}) as ${name(n)}`),
  ])
  const {
    rows: [row],
  } = await sql<{
    all: string
    seen: string
    matched: string
    parts: string[]
    places: Sample['places'] | null
  }>`${sql.raw(CUSTOM_PLAN)}
    with ends as materialized (
      select (select id from contacts where workspace_id = ${workspaceId} order by id limit 1) as first,
        (select id from contacts where workspace_id = ${workspaceId} order by id desc limit 1) as last)
    select coalesce(sum(s.seen), 0) as seen, coalesce(sum(s.matched), 0) as matched,
      array[${sql.join(parts.map((_, n) => sql`coalesce(sum(s.${name(n)}), 0)`))}]::bigint[] as parts,
      json_agg(json_build_object('createdAt', s.created_at, 'matched', s.matched) order by s.created_at desc)
        filter (where s.seen > 0) as places,
      (select coalesce(sum(n), 0) from counters
        where workspace_id = ${workspaceId} and subject = 'contacts') as all
    from ends cross join generate_series(0, ${sql.lit(places - 1)}) as place
    cross join lateral (
      select ${sql.join([
        sql`count(*) as seen`,
        sql`min(c.created_at) as created_at`,
        sql`count(*) filter (where ${allOf([...parts.map((_, n) => sql`c.${name(n)}`), rest])}) as matched`,
        ...parts.map((_, n) => sql`count(*) filter (where c.${name(n)}) as ${name(n)}`),
      ])}
      from (
        select ${tested} from (
          select * from contacts c where c.workspace_id = ${workspaceId} and c.id >= ${start}
          order by c.id limit ${perPlace}) as c ${values} offset 0) as c
      cross join lateral (select c.attrs) as f) as s`.execute(tx)
  return {
    all: Number(row!.all),
    seen: Number(row!.seen),
    matched: Number(row!.matched),
    parts: row!.parts.map(Number),
    places: row!.places ?? [],
  }
}

export const estimateMatches = ({ all, seen, matched }: Sample): number =>
  Math.round((all * matched) / Math.max(1, seen))

/** How many matches a sample may show where there are as many as must be counted. */
const SAMPLE_MARGIN = 1.25

/** Whether there may be no more matches than exact totals go up to. */
export const areFew = (sample: Sample): boolean =>
  estimateMatches(sample) <= SAMPLE_MARGIN * filterStrategy.maxExactTotal

/** Whether the matches are to be counted: there may be few, among not many contacts. */
export const areFewOfFew = (sample: Sample): boolean =>
  sample.all <= filterStrategy.maxCountedForFew && areFew(sample)
