import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'

/** Limits a statement to a workspace where one is given. */
const ofWorkspace = (workspaceId: string | undefined) =>
  workspaceId === undefined ? sql`` : sql`and workspace_id = ${workspaceId}`

/** A channel that has a number at the provider, with the clock of its workspace. */
export type ProviderChannel = {
  workspace_id: string
  id: string
  name: string | null
  identifier: string | null
  account_id: string | null
  provider_phone_number_id: string
  clock_offset_ms: string
}

/** Lists channels with a number at the provider, of one workspace or, for the server itself, of all. */
export const listProviderChannels = async (db: Db, workspaceId?: string): Promise<ProviderChannel[]> =>
  (
    await sql<ProviderChannel>`
    select c.workspace_id, c.id, c.name, c.identifier, c.account_id, c.provider_phone_number_id,
      w.clock_offset_ms
    from channels c join workspaces w on w.id = c.workspace_id
    where c.provider_phone_number_id is not null ${ofWorkspace(workspaceId)}
    order by c.workspace_id, c.id`.execute(db)
  ).rows

export type SandboxChannel = { id: string; type: string; provider_phone_number_id: string | null }

/** Finds the channel of this id, or else the default, or else the first, channel of this type. */
export const findSandboxChannel = async (
  db: Db,
  workspaceId: string,
  type: string,
  id: string | undefined,
): Promise<SandboxChannel | undefined> =>
  (
    await sql<SandboxChannel>`
    select id, type, provider_phone_number_id from channels where workspace_id = ${workspaceId}
      and ${id === undefined ? sql`type = ${type}` : sql`id = ${toStorableId(id)}`}
    order by is_default desc, provider_phone_number_id is null, id limit 1`.execute(db)
  ).rows[0]

export type ProviderTemplateRow = {
  workspace_id: string
  id: string
  provider_id: string
  account_id: string | null
  name: string
  language: string
  category: string | null
  status: string
  components: unknown
}

/** Lists some templates that the provider has, after this one, of one workspace or, for the server itself, of all. */
export const listProviderTemplates = async (
  db: Db,
  workspaceId: string | undefined,
  after: Pick<ProviderTemplateRow, 'workspace_id' | 'id'> | undefined,
  limit: number,
): Promise<ProviderTemplateRow[]> =>
  (
    await sql<ProviderTemplateRow>`
    select workspace_id, id, provider_id, account_id, name, language, category, status, components from templates
    where provider_id is not null and archived_at is null ${ofWorkspace(workspaceId)}
      and (workspace_id, id) > (${after?.workspace_id ?? '0'}::bigint, ${after?.id ?? '0'}::bigint)
    order by workspace_id, id limit ${limit}::int`.execute(db)
  ).rows

/**
 * Assigns a provider id, 15 digits beginning with 8, to approved templates that were inserted into the
 * database directly. A template that is being submitted is not approved yet, so it is not affected.
 */
export const assignProviderIds = async (db: Db, workspaceId?: string): Promise<void> => {
  await sql`
    update templates set provider_id = (800000000000000 + floor(random() * 99999999999999))::bigint::text
    where provider_id is null and status = 'APPROVED' and archived_at is null
      ${ofWorkspace(workspaceId)}`.execute(db)
}

/** Returns a template's id at the provider; undefined when the template does not exist. */
export const findProviderTemplate = async (
  db: Db,
  workspaceId: string,
  id: string,
): Promise<{ provider_id: string | null } | undefined> =>
  db
    .selectFrom('templates')
    .select('provider_id')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(id))
    .executeTakeFirst()

/**
 * `number_id`: the number of its channel at the provider. `contact_phone` and `contact_user_id`: of the
 * customer.
 */
export type ProviderMessageRow = {
  direction: string
  type: string
  channel_id: string | null
  number_id: string | null
  provider_id: string | null
  contact_phone: string | null
  contact_user_id: string | null
}

/** Returns a message with its id at the provider; undefined when it does not exist. */
export const findProviderMessage = async (
  db: Db,
  workspaceId: string,
  id: string,
): Promise<ProviderMessageRow | undefined> =>
  (
    await sql<ProviderMessageRow>`
    select m.direction, m.type, v.channel_id, h.provider_phone_number_id as number_id, m.provider_id,
      coalesce(c.provider_phone, c.phone) as contact_phone, c.chatapp_user_id as contact_user_id
    from messages m
    join conversations v on v.workspace_id = m.workspace_id and v.id = m.conversation_id
    left join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id
    left join contacts c on c.workspace_id = v.workspace_id and c.id = v.contact_id
    where m.workspace_id = ${workspaceId} and m.id = ${toStorableId(id)}`.execute(db)
  ).rows[0]
