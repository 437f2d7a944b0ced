import { sql } from 'kysely'
import { addToCounters, randomShard } from '../workspace/counters.ts'
import type { Db } from '../database.ts'
import type { DeferredWrite } from '../client/deferred-write.ts'
import { asUnknown, toStorableId } from '../values/ids.ts'
import { type Label, type LabelKind, labelTables } from './labels.ts'

/* Adding labels to contacts, and removing them. */

/** `now`: the time that contacts get whose labels change. */
export type LabelChangeRequest = {
  kind: LabelKind
  action: 'add' | 'remove'
  labels: readonly Label[]
  contactIds: readonly string[]
  now: string
}

export type LabelChanges = {
  /** Ids of those of the contacts that exist. */
  contacts: string[]
  /** The labels that contacts gained or lost. */
  pairs: { label: string; contact: string }[]
}

/**
 * Common table expressions that add every label to, or remove it from, those of the contacts that exist, with their
 * counts and times. `locked`: the contacts, in the order of their ids, so that they are not deleted meanwhile.
 * `pairs`: what changed, as `label` and `contact`.
 */
const changeParts = (workspaceId: string, { kind, action, labels, contactIds, now }: LabelChangeRequest) => {
  const { links, column } = labelTables[kind]
  const labelIds = asUnknown(labels.map(({ id }) => id))
  const change =
    action === 'add'
      ? sql`
        insert into ${links} (workspace_id, ${column}, contact_id)
        select ${workspaceId}::bigint, l, locked.id from unnest(${labelIds}) as l, locked
        order by l, locked.id
        on conflict do nothing returning ${column} as label, contact_id as contact`
      : sql`
        delete from ${links} where workspace_id = ${workspaceId} and ${column} = any(${labelIds})
          and contact_id = any(array(select id from locked))
        returning ${column} as label, contact_id as contact`
  const sign = sql.raw(action === 'add' ? '' : '-')
  return sql`
    locked as materialized (
      select id from contacts
      where workspace_id = ${workspaceId} and id = any(${asUnknown(contactIds.map(toStorableId))})
      order by id for no key update
    ), pairs as (${change}
    ), counted as (
      insert into counters (workspace_id, subject, shard, n)
      select ${workspaceId}::bigint, ${`${kind}:`} || label, ${randomShard()}::smallint, ${sign}count(*) from pairs
      group by label order by 2
      on conflict (workspace_id, subject, shard) do update set n = counters.n + excluded.n
    ), touched as (
      update contacts set updated_at = ${now}::timestamptz
      where workspace_id = ${workspaceId} and id = any(array(select contact from pairs))
    )`
}

/** Makes the change of contacts with labels that the transaction has locked, in one statement. */
export const changeContactLabels = async (
  tx: Db,
  workspaceId: string,
  request: LabelChangeRequest,
): Promise<LabelChanges> => {
  const { rows } = await sql<{ contact: string; labels: string[] | null }>`
    with ${changeParts(workspaceId, request)}
    select locked.id as contact, array_agg(pairs.label order by pairs.label)
      filter (where pairs.label is not null) as labels
    from locked left join pairs on pairs.contact = locked.id
    group by locked.id order by locked.id`.execute(tx)
  return {
    contacts: rows.map(({ contact }) => contact),
    pairs: rows.flatMap(({ contact, labels }) => (labels ?? []).map((label) => ({ label, contact }))),
  }
}

/**
 * Returns the optimistic change of contacts: with labels that were not read in the transaction. It is made, with its
 * events, where the contacts exist, the labels exist under these names, and either each contact gains or loses each of
 * them, or none does, which needs no event; otherwise it is undone. The labels are locked.
 */
export const buildLabelChange = (workspaceId: string, request: LabelChangeRequest): DeferredWrite => {
  const { kind, labels, contactIds } = request
  const [ids, names] = [labels.map(({ id }) => id), labels.map(({ name }) => name)]
  return {
    expectRow: 'as_assumed',
    eventsOf: 'pairs',
    parts: sql`
    known as materialized (
      select l.id from unnest(${ids}::bigint[], ${names}::text[]) as u (id, name)
      cross join lateral (
        select t.id from ${labelTables[kind].labels} t
        where t.workspace_id = ${workspaceId} and t.id = u.id and t.name = u.name for key share) as l
    ), ${changeParts(workspaceId, request)}, as_assumed as (
      select from (select count(*) as n from known) as l, (select count(*) as n from locked) as c,
        (select count(*) as n from pairs) as p
      where l.n = ${ids.length}::int and c.n = ${contactIds.length}::int and p.n in (0, l.n * c.n)
    )`,
  }
}

/** Adds every label to every contact. Returns the pairs that are new. */
export const linkLabels = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  labelIds: readonly string[],
  contactIds: readonly string[],
): Promise<{ label: string; contact: string }[]> => {
  const { links, column } = labelTables[kind]
  const { rows } = await sql<{ label: string; contact: string }>`
    insert into ${links} (workspace_id, ${column}, contact_id)
    select ${workspaceId}, l, c from unnest(${labelIds}::bigint[]) as l, unnest(${contactIds}::bigint[]) as c
      order by l, c
    on conflict do nothing returning ${column} as label, contact_id as contact`.execute(tx)
  await addToCounters(tx, workspaceId, countByLabel(kind, rows, 1))
  return rows
}

const countByLabel = (
  kind: LabelKind,
  pairs: readonly { label: string }[],
  by: 1 | -1,
): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const { label } of pairs) counts.set(`${kind}:${label}`, (counts.get(`${kind}:${label}`) ?? 0) + by)
  return counts
}
