import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { quickMessageSearchText } from '../messages/quick-messages.ts'
import { fold } from '../values/text.ts'

export type DemoTemplate = {
  name: string
  language: string
  category: string
  status: string
  rejection_reason?: string
  components: readonly unknown[]
}
export type DemoQuickMessage = {
  code: string
  title: string
  type: string
  description?: string
  text: string | null
  media_url?: string
  file_name?: string
  template_name?: string
  visibility: 'private' | 'team' | 'company'
  team?: number
  owner: number
  /** Indexes of the staff members whose favourite it is. */
  favoriteOf?: readonly number[]
}
export type NewDemoSlaPolicy = {
  name: string
  first_response_seconds: number
  next_response_seconds: number
  resolution_seconds: number
}

/**
 * Inserts templates of an account as if this staff member had submitted them some weeks ago. Provider ids
 * count up from `firstProviderId`.
 */
export const insertDemoTemplates = async (
  tx: Db,
  workspaceId: string,
  templates: readonly DemoTemplate[],
  {
    account,
    submittedBy,
    firstProviderId,
    now,
  }: {
    account: { account_id: string; account_name: string }
    submittedBy: string
    firstProviderId: number
    now: string
  },
): Promise<void> => {
  await sql`
    insert into templates (workspace_id, account_id, account_name, provider_id, name, language, category,
      status, rejection_reason, components, submitted_by, created_at, updated_at)
    select ${workspaceId}::bigint, ${account.account_id}, ${account.account_name},
      (${firstProviderId}::bigint + n)::text, t->>'name', t->>'language', t->>'category', t->>'status',
      t->>'rejection_reason', t->'components', ${submittedBy}::bigint,
      ${now}::timestamptz - (40 - n) * interval '1 day',
      ${now}::timestamptz - (39 - n) * interval '1 day'
    from jsonb_array_elements(${JSON.stringify(templates)}::text::jsonb)
      with ordinality as r (t, n)`.execute(tx)
}

/** Inserts quick messages; `owner`, `team` and `favoriteOf` are indexes into these lists. */
export const insertDemoQuickMessages = async (
  tx: Db,
  workspaceId: string,
  messages: readonly DemoQuickMessage[],
  { staffIds, teamIds, now }: { staffIds: readonly string[]; teamIds: readonly string[]; now: string },
): Promise<void> => {
  const rows = await tx
    .insertInto('quick_messages')
    .values(
      messages.map(({ owner, team, favoriteOf: _, ...message }) => ({
        ...message,
        workspace_id: workspaceId,
        code_key: fold(message.code),
        search: quickMessageSearchText(message),
        description: message.description ?? null,
        media_url: message.media_url ?? null,
        file_name: message.file_name ?? null,
        template_name: message.template_name ?? null,
        team_id: team === undefined ? null : teamIds[team]!,
        owner_staff_id: staffIds[owner]!,
        created_at: now,
        updated_at: now,
      })),
    )
    .returning(['id', 'code'])
    .execute()
  const ids = new Map(rows.map(({ id, code }) => [code, id]))
  const favorites = messages.flatMap(({ code, favoriteOf = [] }) =>
    favoriteOf.map((index) => ({
      workspace_id: workspaceId,
      staff_id: staffIds[index]!,
      quick_message_id: ids.get(code)!,
    })),
  )
  if (favorites.length > 0) await tx.insertInto('quick_message_favorites').values(favorites).execute()
}

export type NewDemoShortLink = {
  channel_id: string
  code: string
  url: string
  message: string
  qr_format: 'PNG' | 'SVG' | null
  qr: Uint8Array | null
  qr_key: string | null
  created_by: string
  at: string
}

/** Inserts links that the provider created at `at`. */
export const insertDemoShortLinks = async (
  tx: Db,
  workspaceId: string,
  links: readonly NewDemoShortLink[],
): Promise<void> => {
  await tx
    .insertInto('short_links')
    .values(
      links.map(({ at, ...link }) => ({
        ...link,
        workspace_id: workspaceId,
        search: fold(link.message),
        called_at: null,
        created_at: at,
        updated_at: at,
      })),
    )
    .execute()
}

/** Inserts a service level for all channels, around the clock; returns its id. */
export const insertDemoSlaPolicy = async (
  tx: Db,
  workspaceId: string,
  policy: NewDemoSlaPolicy,
  now: string,
): Promise<string> =>
  (
    await tx
      .insertInto('sla_policies')
      .values({ workspace_id: workspaceId, ...policy, channel_ids: null, hours: null, created_at: now })
      .returning('id')
      .executeTakeFirstOrThrow()
  ).id
