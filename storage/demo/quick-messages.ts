import type { Db } from '../database.ts'
import { quickMessageSearchText } from '../messages/quick-messages.ts'
import { fold } from '../values/text.ts'

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
