import { sql } from 'kysely'
import type { Db } from '../database.ts'

/**
 * Takes up to `block` tokens from a token bucket that refills at `capacity` per `windowSeconds`. Returns how
 * many were granted and how many remain. The granted amount is a column that is read back: computed as new
 * minus old it admitted everything under concurrency. On real time, by the database's clock, which all
 * servers share; when it was set back, nothing refills until the next call. `surplus`: tokens that overflowed
 * while the caller held some.
 */
export const leaseTokens = async (
  db: Db,
  bucket: string,
  capacity: number,
  windowSeconds: number,
  block: number,
  surplus: number,
): Promise<{ granted: number; left: number }> => {
  const { rows } = await sql<{ granted: number; tokens: number }>`
    insert into rate_buckets as b (bucket, tokens, granted, at)
    values (${bucket}, ${capacity - block}::float8, ${block}::float8, clock_timestamp())
    on conflict (bucket) do update set (tokens, granted, at) = (
      select full_now - least(${block}::float8, floor(full_now)),
        least(${block}::float8, floor(full_now)), clock_timestamp()
      from (
        select greatest(0, least(${capacity}::float8,
          b.tokens + greatest(0, extract(epoch from clock_timestamp() - b.at)) * ${capacity / windowSeconds}::float8)
          - ${surplus}::float8) as full_now
      ) as t)
    returning granted, tokens`.execute(db)
  return { granted: Number(rows[0]!.granted), left: Number(rows[0]!.tokens) }
}

/** Deletes buckets that have been full again for long, which equals having none. */
export const deleteIdleBuckets = async (db: Db): Promise<void> => {
  await sql`delete from rate_buckets where at < clock_timestamp() - interval '1 hour'`.execute(db)
}
