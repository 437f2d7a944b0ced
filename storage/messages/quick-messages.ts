import { sql } from 'kysely'
import type { Interactive } from '../../catalog/interactive.ts'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import { containsPattern, fold } from '../values/text.ts'

/** The staff member who reads. `all`: may see the quick messages of every team, as managers do. */
export type QuickMessageViewer = { id: string; all: boolean }

export type QuickMessageVisibility = 'private' | 'team' | 'company'
/** A quick message as one staff member sees it. */
export type QuickMessageRow = {
  id: string
  code: string
  code_key: string
  title: string | null
  type: string
  description: string | null
  text: string | null
  media_url: string | null
  file_name: string | null
  template_name: string | null
  interactive: Interactive | null
  visibility: QuickMessageVisibility
  team_id: string | null
  owner_staff_id: string | null
  favorite: boolean
  updated_at: string
  version: number
}

/**
 * The condition that a staff member may use a quick message `q`: the company's, those of their teams, and
 * their own. Only the owner sees a private one.
 */
export const isVisibleTo = ({ id, all }: QuickMessageViewer) =>
  sql`(q.visibility = 'company' or q.owner_staff_id = ${id}::bigint or (q.visibility = 'team' and ${
    all
      ? sql`true`
      : sql`exists (
          select 1 from team_members t
          where t.workspace_id = q.workspace_id and t.team_id = q.team_id and t.staff_id = ${id}::bigint)`
  }))`

const columns = (viewer: QuickMessageViewer) => sql`
  q.id, q.code, q.code_key, q.title, q.type, q.description, q.text, q.media_url, q.file_name,
  q.template_name, q.interactive, q.visibility, q.team_id, q.owner_staff_id, q.updated_at, q.version, exists (
    select 1 from quick_message_favorites f
    where f.workspace_id = q.workspace_id and f.staff_id = ${viewer.id}::bigint
      and f.quick_message_id = q.id) as favorite`

/** Returns the text that a search matches. The separator does not occur in search terms. */
export const quickMessageSearchText = ({
  code,
  title,
  text,
}: {
  code: string
  title: string | null
  text: string | null
}): string => fold([code, title ?? '', text ?? ''].join('\u001F'))

export type QuickMessageFilter = {
  query?: string | undefined
  type?: string | undefined
  visibility?: QuickMessageVisibility | undefined
}

const matches = (
  workspaceId: string,
  viewer: QuickMessageViewer,
  { query, type, visibility }: QuickMessageFilter,
) => sql`
  q.workspace_id = ${workspaceId} and ${isVisibleTo(viewer)}
  ${query === undefined ? sql`` : sql`and q.search like ${containsPattern(fold(query))}`}
  ${type === undefined ? sql`` : sql`and q.type = ${type.toUpperCase()}`}
  ${visibility === undefined ? sql`` : sql`and q.visibility = ${visibility}`}`

/** Lists a page by code, which two that one staff member may see seldom share. */
export const listQuickMessageRows = async (
  tx: Db,
  workspaceId: string,
  viewer: QuickMessageViewer,
  filter: QuickMessageFilter,
  after: { codeKey: string; id: string } | null,
  limit: number,
): Promise<QuickMessageRow[]> =>
  (
    await sql<QuickMessageRow>`
    select ${columns(viewer)} from quick_messages q where ${matches(workspaceId, viewer, filter)}
    ${after === null ? sql`` : sql`and (q.code_key, q.id) > (${after.codeKey}, ${after.id}::bigint)`}
    order by q.code_key, q.id limit ${limit}`.execute(tx)
  ).rows

export const countQuickMessages = async (
  tx: Db,
  workspaceId: string,
  viewer: QuickMessageViewer,
  filter: QuickMessageFilter,
): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
      select count(*) as n from quick_messages q
      where ${matches(workspaceId, viewer, filter)}`.execute(tx)
    ).rows[0]!.n,
  )

/** Locks a quick message; undefined when it does not exist or the viewer may not see it. */
export const lockQuickMessage = async (
  tx: Db,
  workspaceId: string,
  viewer: QuickMessageViewer,
  id: string,
): Promise<QuickMessageRow | undefined> =>
  (
    await sql<QuickMessageRow>`
    select ${columns(viewer)} from quick_messages q
    where q.workspace_id = ${workspaceId} and q.id = ${toStorableId(id)} and ${isVisibleTo(viewer)}
    for update of q`.execute(tx)
  ).rows[0]

/**
 * Locks the codes of quick messages of this workspace until the transaction ends: of two that take one code
 * concurrently, the second finds the first.
 */
export const lockQuickMessageCodes = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`
    select pg_advisory_xact_lock(hashtextextended(${`quick_messages ${workspaceId}`}, 0))`.execute(tx)
}

/**
 * Returns the id of another quick message with this code, ignoring case, that the viewer may see. `ownId`: the
 * one that may have it.
 */
export const findVisibleByCode = async (
  tx: Db,
  workspaceId: string,
  viewer: QuickMessageViewer,
  code: string,
  ownId: string | undefined,
): Promise<string | undefined> =>
  (
    await sql<{ id: string }>`
    select q.id from quick_messages q
    where q.workspace_id = ${workspaceId} and q.code_key = ${fold(code)}
      and q.id <> ${toStorableId(ownId ?? '0')}::bigint and ${isVisibleTo(viewer)}
    order by q.id limit 1`.execute(tx)
  ).rows[0]?.id

export type QuickMessageFields = Pick<
  QuickMessageRow,
  'code' | 'title' | 'type' | 'description' | 'text' | 'media_url' | 'file_name' | 'visibility' | 'team_id'
>
export type NewQuickMessage = QuickMessageFields & Pick<QuickMessageRow, 'interactive'>

export const insertQuickMessage = async (
  tx: Db,
  workspaceId: string,
  ownerId: string,
  fields: NewQuickMessage,
  now: string,
): Promise<string> =>
  (
    await tx
      .insertInto('quick_messages')
      .values({
        ...fields,
        interactive: fields.interactive && sql`${JSON.stringify(fields.interactive)}::jsonb`,
        workspace_id: workspaceId,
        code_key: fold(fields.code),
        search: quickMessageSearchText(fields),
        template_name: null,
        owner_staff_id: ownerId,
        created_at: now,
        updated_at: now,
      })
      .returning('id')
      .executeTakeFirstOrThrow()
  ).id

/** Changes a locked row. */
export const updateQuickMessageRow = async (
  tx: Db,
  workspaceId: string,
  id: string,
  fields: QuickMessageFields,
  now: string,
): Promise<void> => {
  await tx
    .updateTable('quick_messages')
    .set({ ...fields, code_key: fold(fields.code), search: quickMessageSearchText(fields), updated_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/** Deletes a quick message, also as a favourite. */
export const deleteQuickMessageRow = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await sql`
    with f as (
      delete from quick_message_favorites
      where workspace_id = ${workspaceId} and quick_message_id = ${id}::bigint)
    delete from quick_messages where workspace_id = ${workspaceId} and id = ${id}::bigint`.execute(tx)
}

/** Returns a team, and whether this staff member belongs to it; undefined when it does not exist. */
export const findTeam = async (
  tx: Db,
  workspaceId: string,
  id: string,
  staffId: string,
): Promise<{ id: string; member: boolean } | undefined> =>
  (
    await sql<{ id: string; member: boolean }>`
    select t.id, exists (
      select 1 from team_members m
      where m.workspace_id = t.workspace_id and m.team_id = t.id
        and m.staff_id = ${staffId}::bigint) as member
    from teams t where t.workspace_id = ${workspaceId} and t.id = ${toStorableId(id)}`.execute(tx)
  ).rows[0]
