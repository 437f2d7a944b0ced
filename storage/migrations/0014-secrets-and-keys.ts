import { type Kysely, sql } from 'kysely'

const statements = [
  // Addresses and CIDRs that the key may be used from; null: from anywhere.
  `alter table api_keys add column allow_from text[]`,
  // The running servers, and the fingerprints of the secrets that each can open. Unlogged: written anew by
  // every server within seconds. Its times are real times.
  `create unlogged table servers (
    id text collate "C" primary key, secrets text[] not null, seen_at timestamptz not null
  )`,
  // Up to now a 400 was stored as the response of its key.
  `delete from idempotency where state = 'done' and status = 400`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
