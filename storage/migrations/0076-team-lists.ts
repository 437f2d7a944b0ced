import { type Kysely, sql } from 'kysely'
import { createIndexConcurrently } from './concurrently.ts'

/** The lists of a team, in their order: the index before had none, so that they read all conversations of the team. */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  await createIndexConcurrently(
    kysely,
    'conversations_of_team',
    `conversations (workspace_id, assigned_team_id, facet, activity_at desc, id desc)
      where assigned_team_id is not null`,
  )
  const how = kysely.isTransaction ? '' : 'concurrently'
  await sql.raw(`drop index ${how} if exists conversations_team`).execute(kysely)
}
