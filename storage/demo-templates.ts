import { sql } from 'kysely'
import type { Db } from './database.ts'
import { quickMessageSearch } from './quick-messages.ts'
import { fold } from './text.ts'

export type DemoTemplate = { name: string; language: string; category: string; status: string; rejection_reason?: string; components: readonly unknown[] }
export type DemoQuickMessage = {
  code: string; title: string; type: string; description?: string; text: string | null; media_url?: string; file_name?: string; template_name?: string
  visibility: 'private' | 'team' | 'company'; team?: number; owner: number
}
export type DemoPolicy = { name: string; first_response_seconds: number; next_response_seconds: number; resolution_seconds: number }

/** Templates of an account, as if each had been submitted by this staff member a while ago; ids of the provider count from `firstProviderId`. */
export const insertDemoTemplates = async (
  tx: Db, workspaceId: string, templates: readonly DemoTemplate[],
  { account, submittedBy, firstProviderId, now }: { account: { account_id: string; account_name: string }; submittedBy: string; firstProviderId: number; now: string },
): Promise<void> => {
  await sql`
    insert into templates (workspace_id, account_id, account_name, provider_id, name, language, category, status, rejection_reason, components, submitted_by, created_at, updated_at)
    select ${workspaceId}::bigint, ${account.account_id}, ${account.account_name}, (${firstProviderId}::bigint + n)::text, t->>'name', t->>'language', t->>'category', t->>'status',
      t->>'rejection_reason', t->'components', ${submittedBy}::bigint, ${now}::timestamptz - (40 - n) * interval '1 day', ${now}::timestamptz - (39 - n) * interval '1 day'
    from jsonb_array_elements(${JSON.stringify(templates)}::text::jsonb) with ordinality as r (t, n)`.execute(tx)
}

/** Saved replies; `owner` and `team` are places in these lists. */
export const insertDemoQuickMessages = async (
  tx: Db, workspaceId: string, messages: readonly DemoQuickMessage[], { staffIds, teamIds, now }: { staffIds: readonly string[]; teamIds: readonly string[]; now: string },
): Promise<void> => {
  await tx.insertInto('quick_messages').values(messages.map(({ owner, team, ...message }) => ({
    ...message, workspace_id: workspaceId, code_key: fold(message.code), search: quickMessageSearch(message), description: message.description ?? null, media_url: message.media_url ?? null, file_name: message.file_name ?? null,
    template_name: message.template_name ?? null, team_id: team === undefined ? null : teamIds[team]!, owner_staff_id: staffIds[owner]!, created_at: now, updated_at: now,
  }))).execute()
}

/** A service level for all channels, around the clock; answers its id. */
export const insertDemoPolicy = async (tx: Db, workspaceId: string, policy: DemoPolicy, now: string): Promise<string> =>
  (await tx.insertInto('sla_policies').values({ workspace_id: workspaceId, ...policy, channel_ids: null, hours: null, created_at: now }).returning('id').executeTakeFirstOrThrow()).id
