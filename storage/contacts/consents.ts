import { sql } from 'kysely'
import { markLatestRecipient } from '../broadcasts/sends.ts'
import type { Db, TableRow } from '../database.ts'
import { toStorableId } from '../values/ids.ts'

export type ConsentChangeRow = Omit<TableRow<'consent_changes'>, 'workspace_id'>
export type NewConsentChange = Omit<ConsentChangeRow, 'id'>

/**
 * Adds a change to the history of a locked contact. It holds unless a later one of the same purpose and channel was
 * recorded before. Returns its id, whether it holds, and whether it changed the state.
 */
export const insertConsentChange = async (
  tx: Db,
  workspaceId: string,
  change: NewConsentChange,
): Promise<{ id: string; holds: boolean; changed: boolean }> => {
  const { contact_id: contactId, purpose, channel, state, source, proof, at } = change
  // The broadcast after which somebody declines marketing is told of it.
  const optOut =
    state === 'withdrawn' && purpose === 'marketing'
      ? sql`, ${markLatestRecipient(workspaceId, contactId, { at, set: sql`opted_out = true` })}`
      : sql``
  const { rows } = await sql<{ id: string; holds: boolean; changed: boolean }>`
    with b as (select state from consents where workspace_id = ${workspaceId} and contact_id = ${contactId}
      and purpose = ${purpose} and channel = ${channel}),
    h as (insert into consent_changes
        (workspace_id, contact_id, purpose, channel, state, source, proof, staff_id, at, recorded_at)
      values (${workspaceId}, ${contactId}, ${purpose}, ${channel}, ${state}, ${source}, ${proof},
        ${change.staff_id}, ${at}, ${change.recorded_at})
      returning workspace_id, contact_id, purpose, channel, state, at, id),
    s as (insert into consents as c (workspace_id, contact_id, purpose, channel, state, at, change_id)
      select workspace_id, contact_id, purpose, channel, state, at, id from h
      on conflict (workspace_id, contact_id, purpose, channel)
        do update set state = excluded.state, at = excluded.at, change_id = excluded.change_id
        where c.at <= excluded.at
      returning change_id)
    ${optOut}
    select h.id, exists (select 1 from s) as holds,
      exists (select 1 from s) and not exists (select 1 from b where b.state = h.state) as changed
    from h`.execute(tx)
  return rows[0]!
}

/** What holds (`c`), with the change that said so (`h`). */
const selectHeld = (tx: Db) =>
  tx
    .selectFrom('consents as c')
    .innerJoin('consent_changes as h', (join) =>
      join
        .onRef('h.workspace_id', '=', 'c.workspace_id')
        .onRef('h.contact_id', '=', 'c.contact_id')
        .onRef('h.id', '=', 'c.change_id'),
    )

/** Returns what holds for a purpose on channels of a type: the later of what was said of it and of all channels. */
export const findConsent = async (
  tx: Db,
  workspaceId: string,
  contactId: string,
  purpose: string,
  channelType: string,
): Promise<{ state: 'granted' | 'withdrawn'; source: string; at: string } | undefined> =>
  await selectHeld(tx)
    .select(['c.state', 'c.at', 'h.source'])
    .where('c.workspace_id', '=', workspaceId)
    .where('c.contact_id', '=', contactId)
    .where('c.purpose', '=', purpose)
    .where('c.channel', 'in', ['all', channelType])
    .orderBy('c.at', 'desc')
    .orderBy('c.change_id', 'desc')
    .limit(1)
    .executeTakeFirst()

/** Returns what holds of a purpose for some contacts, the later last. */
export const listConsentStates = async (
  tx: Db,
  workspaceId: string,
  contactIds: readonly string[],
  purpose: string,
): Promise<{ contact_id: string; channel: string; state: string }[]> =>
  await tx
    .selectFrom('consents')
    .select(['contact_id', 'channel', 'state'])
    .where('workspace_id', '=', workspaceId)
    .where('contact_id', '=', sql<string>`any(${contactIds}::bigint[])`)
    .where('purpose', '=', purpose)
    .orderBy('at')
    .orderBy('change_id')
    .execute()

/** Returns which of some contacts withdrew a purpose on a channel by a source, and when, in the order of their ids. */
export const listWithdrawals = async (
  tx: Db,
  workspaceId: string,
  contactIds: readonly string[],
  { purpose, channel, source }: Pick<ConsentChangeRow, 'purpose' | 'channel' | 'source'>,
): Promise<{ contact_id: string; at: string }[]> =>
  await selectHeld(tx)
    .select(['c.contact_id', 'c.at'])
    .where('c.workspace_id', '=', workspaceId)
    .where('c.contact_id', '=', sql<string>`any(${contactIds}::bigint[])`)
    .where('c.purpose', '=', purpose)
    .where('c.channel', '=', channel)
    .where('c.state', '=', 'withdrawn')
    .where('h.source', '=', source)
    .orderBy('c.contact_id')
    .execute()

type Filter = { purpose?: string | undefined }

const history = (db: Db, workspaceId: string, contactId: string, { purpose }: Filter) =>
  db
    .selectFrom('consent_changes')
    .where('workspace_id', '=', workspaceId)
    .where('contact_id', '=', toStorableId(contactId))
    .$if(purpose !== undefined, (query) => query.where('purpose', '=', purpose!))

/** The history of a contact, latest record first; `after`: the id of the last row of the page before. */
export const listConsentChanges = async (
  db: Db,
  workspaceId: string,
  contactId: string,
  filter: Filter,
  after: string | null,
  limit: number,
): Promise<(ConsentChangeRow & { holds: boolean })[]> =>
  await history(db, workspaceId, contactId, filter)
    .selectAll()
    .select(
      sql<boolean>`exists (select 1 from consents c where c.workspace_id = consent_changes.workspace_id
        and c.contact_id = consent_changes.contact_id and c.purpose = consent_changes.purpose
        and c.channel = consent_changes.channel and c.change_id = consent_changes.id)`.as('holds'),
    )
    .$if(after !== null, (query) => query.where('id', '<', after!))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()

export const countConsentChanges = async (
  db: Db,
  workspaceId: string,
  contactId: string,
  filter: Filter,
): Promise<number> =>
  Number(
    (
      await history(db, workspaceId, contactId, filter)
        .select((eb) => eb.fn.countAll().as('count'))
        .executeTakeFirstOrThrow()
    ).count,
  )
