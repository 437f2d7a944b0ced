import { sql } from 'kysely'
import type { Db } from './database.ts'
import { toStorableId } from './ids.ts'

/** A channel that has a number at the provider. */
export type ProviderChannel = {
  workspace_id: string
  id: string
  name: string | null
  identifier: string | null
  account_id: string | null
  provider_phone_number_id: string
}

/** Channels with a number at the provider: of one workspace, or for the server itself of all. */
export const listProviderChannels = async (db: Db, workspaceId?: string): Promise<ProviderChannel[]> =>
  (
    await sql<ProviderChannel>`
    select workspace_id, id, name, identifier, account_id, provider_phone_number_id from channels
    where provider_phone_number_id is not null ${workspaceId === undefined ? sql`` : sql`and workspace_id = ${workspaceId}`} order by workspace_id, id`.execute(
      db,
    )
  ).rows

export type SandboxChannel = { id: string; type: string; provider_phone_number_id: string | null }

/** The channel of this id, or the default one of this type, else its first. */
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
  provider_id: string
  account_id: string | null
  name: string
  language: string
  category: string | null
  status: string
  components: unknown
}

/** Templates that the provider has: of one workspace, or for the server itself of all. */
export const listProviderTemplates = async (db: Db, workspaceId?: string): Promise<ProviderTemplateRow[]> =>
  (
    await sql<ProviderTemplateRow>`
    select workspace_id, provider_id, account_id, name, language, category, status, components from templates
    where provider_id is not null and archived_at is null ${workspaceId === undefined ? sql`` : sql`and workspace_id = ${workspaceId}`} order by workspace_id, id`.execute(
      db,
    )
  ).rows

/**
 * Gives approved templates that were written into the database directly an id at the provider: 15 digits,
 * of which the first is an 8. One that is being submitted has none yet and is not approved, so it is left
 * alone.
 */
export const assignProviderIds = async (db: Db, workspaceId?: string): Promise<void> => {
  await sql`
    update templates set provider_id = (800000000000000 + floor(random() * 99999999999999))::bigint::text
    where provider_id is null and status = 'APPROVED' and archived_at is null ${workspaceId === undefined ? sql`` : sql`and workspace_id = ${workspaceId}`}`.execute(
    db,
  )
}

/** A template's id at the provider. */
export const findProviderTemplate = async (
  db: Db,
  workspaceId: string,
  id: string,
): Promise<{ provider_id: string | null } | undefined> =>
  (
    await sql<{
      provider_id: string | null
    }>`select provider_id from templates where workspace_id = ${workspaceId} and id = ${toStorableId(id)}`.execute(
      db,
    )
  ).rows[0]

export type ProviderMessageRow = { direction: string; channel_id: string | null; provider_id: string | null }

/** A message's id at the provider. */
export const findProviderMessage = async (
  db: Db,
  workspaceId: string,
  id: string,
): Promise<ProviderMessageRow | undefined> =>
  (
    await sql<ProviderMessageRow>`select direction, channel_id, provider_id from messages where workspace_id = ${workspaceId} and id = ${toStorableId(id)}`.execute(
      db,
    )
  ).rows[0]
