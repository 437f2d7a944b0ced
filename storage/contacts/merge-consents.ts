import { sql } from 'kysely'
import type { Db } from '../database.ts'

/**
 * What a merge records of the consents of two locked contacts: what holds of each, the ids of the records of the one
 * that goes, and those of the one that stays. Ids grow under the locks of the contacts.
 */
export const describeConsents = (workspaceId: string, fromId: string, intoId: string) => {
  const ids = (id: string) => sql`(select coalesce(jsonb_agg(h.id), '[]') from consent_changes h
    where h.workspace_id = ${workspaceId} and h.contact_id = ${id})`
  return sql`jsonb_build_object('changes', ${ids(fromId)}, 'kept', ${ids(intoId)},
    'states', (select coalesce(jsonb_agg(to_jsonb(k)), '[]') from consents k
      where k.workspace_id = ${workspaceId} and k.contact_id in (${fromId}::bigint, ${intoId}::bigint)))`
}

/**
 * Gives a merged contact that was brought back its consents, while its row in contact_merges is still there. What was
 * recorded since the merge stays with the contact that was kept, and a withdrawal is of both: nobody can tell which of
 * them asked for it.
 */
export const restoreConsents = async (tx: Db, workspaceId: string, fromId: string): Promise<void> => {
  const merge = sql`m as (select into_id, before -> 'consents' as was from contact_merges
      where workspace_id = ${workspaceId} and contact_id = ${fromId}),
    known as (select e.id::bigint as id
      from m, jsonb_array_elements_text((m.was -> 'changes') || (m.was -> 'kept')) e (id))`
  await sql`
    with ${merge}
    update consent_changes h set contact_id = ${fromId}
    from m, jsonb_array_elements_text(m.was -> 'changes') e (id)
    where h.workspace_id = ${workspaceId} and h.contact_id = m.into_id and h.id = e.id::bigint`.execute(tx)
  await sql`
    with ${merge}
    insert into consent_changes
      (workspace_id, contact_id, purpose, channel, state, source, proof, staff_id, at, recorded_at)
    select h.workspace_id, ${fromId}::bigint, h.purpose, h.channel, h.state, h.source, h.proof, h.staff_id, h.at,
      h.recorded_at
    from m, consent_changes h
    where h.workspace_id = ${workspaceId} and h.contact_id = m.into_id and h.state = 'withdrawn'
      and h.id > (select coalesce(max(id), 0) from known) and m.was is not null
    order by h.id`.execute(tx)
  await sql`
    with ${merge}
    delete from consents k using m where k.workspace_id = ${workspaceId} and k.contact_id = m.into_id`.execute(
    tx,
  )
  // What held before the merge, or what is later and was recorded since. A state that another merge, which was undone
  // first, had brought is not there any more: the history tells then.
  await sql`
    with ${merge},
    history as (
      select h.contact_id, h.purpose, h.channel, h.state, h.at, h.id from consent_changes h
      where h.workspace_id = ${workspaceId}
        and h.contact_id in (select into_id from m union all select ${fromId}::bigint)
    ),
    states as (
      select k.contact_id, k.purpose, k.channel, k.state, k.at, k.change_id
      from m, jsonb_populate_recordset(null::consents, m.was -> 'states') k
      where exists (select 1 from history h where h.contact_id = k.contact_id and h.id = k.change_id)
    ),
    candidates as (
      select * from states
      union all
      select * from history h
      where not (h.id in (select id from known) and exists (select 1 from states k
        where k.contact_id = h.contact_id and k.purpose = h.purpose and k.channel = h.channel))
    )
    insert into consents (workspace_id, contact_id, purpose, channel, state, at, change_id)
    select distinct on (contact_id, purpose, channel)
      ${workspaceId}::bigint, contact_id, purpose, channel, state, at, change_id
    from candidates order by contact_id, purpose, channel, at desc, change_id desc`.execute(tx)
}
