import { type Kysely, sql } from 'kysely'

// PostgreSQL sorts the combining marks of a text one by one, in time that grows with the square of those in a row: ten
// thousands took seconds, so that a batch of messages was never indexed. Texts are decomposed in pieces; what is found
// stays the same, but for words with marks out of order at the end of a piece.
const PIECE = 200

const statements = [
  `create function message_decompose(body text) returns text
    language sql immutable strict parallel safe as $$
    select case when length(body) <= ${PIECE} then normalize(body, NFKD) else (
      select string_agg(normalize(substr(body, i, ${PIECE}), NFKD), '' order by i)
      from generate_series(1, length(body), ${PIECE}) as i) end
  $$`,
  `do $$ begin
    execute replace(pg_get_functiondef('message_words(text)'::regprocedure),
      'normalize(words, NFKD)', 'message_decompose(words)');
  end $$`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
