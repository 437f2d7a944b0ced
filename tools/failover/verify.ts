import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { withStorage } from '../../tests/databases.ts'
import { listProviderMessages, markOf } from '../../tests/soak/sends-scene.ts'
import type { Db } from '../../storage/database.ts'
import type { Acknowledged } from './clients.ts'
import type { Scene } from './scene.ts'

/** Counts; all but `webhooks.repeated` and the totals have to be 0. */
export type Verdict = {
  contacts: { acknowledged: number; lost: number; doubled: number }
  tags: { acknowledged: number; lost: number; doubled: number }
  replies: { acknowledged: number; lost: number; doubled: number }
  webhooks: { events: number; lost: number; unknown: number; repeated: number }
}

const DELIVERED_WITHIN_MS = 120_000

type Row = { phone: string; id: string; created: number; tagged: number; has_tag: boolean }

/** Contacts of the clients, with how many events tell of their creation and of their tag. */
const listContacts = async (db: Db, workspaceId: string): Promise<Row[]> => {
  const { rows } = await sql<Row>`
    with created as (
      select data->'contact'->>'id' as id, count(*) as n from events
      where workspace_id = ${workspaceId} and type = 'contact.created/1' group by 1),
    tagged as (
      select contact_id as id, count(*) as n
      from events, jsonb_array_elements_text(data->'contact_ids') as contact_id
      where workspace_id = ${workspaceId} and type = 'contact.tags_added/1'
        and data->'tags' @> '[{"name":"kept"}]' group by 1)
    select c.phone, c.id::text, coalesce(created.n, 0)::int as created, coalesce(tagged.n, 0)::int as tagged,
      exists (select from contact_tags ct join tags t on t.workspace_id = ct.workspace_id and t.id = ct.tag_id
        where ct.workspace_id = c.workspace_id and ct.contact_id = c.id and t.name = 'kept') as has_tag
    from contacts c left join created on created.id = c.id::text left join tagged on tagged.id = c.id::text
    where c.workspace_id = ${workspaceId} and c.name like 'Customer %'`.execute(db)
  return rows
}

const listEvents = async (db: Db, workspaceId: string): Promise<string[]> =>
  (await db.selectFrom('events').select('id').where('workspace_id', '=', workspaceId).execute()).map(
    ({ id }) => id,
  )

const verifyWebhooks = async (db: Db, { workspaceId, receiver }: Scene): Promise<Verdict['webhooks']> => {
  const deadline = performance.now() + DELIVERED_WITHIN_MS
  for (;;) {
    const events = await listEvents(db, workspaceId)
    const lost = events.filter((id) => !receiver.received.has(id)).length
    if (lost > 0 && performance.now() < deadline) {
      await pause(1000)
      continue
    }
    const known = new Set(events)
    return {
      events: events.length,
      lost,
      // Told, but of a change that is not there: it was lost with a leader.
      unknown: [...receiver.received.keys()].filter((id) => !known.has(id)).length,
      repeated: [...receiver.received.values()].reduce((sum, n) => sum + n - 1, 0),
    }
  }
}

/** Compares what clients were told with the database, the provider and the receiver of webhooks. */
export const verify = (scene: Scene, acknowledged: Acknowledged): Promise<Verdict> =>
  withStorage({ databaseUrl: scene.cluster.directUrl }, async ({ db }) => {
    const webhooks = await verifyWebhooks(db, scene)
    const rows = await listContacts(db, scene.workspaceId)
    const byPhone = new Map(rows.map((row) => [row.phone, row]))
    const { contacts, tagged, replies } = acknowledged
    const marks = (await listProviderMessages(scene.sandbox)).map(markOf)
    const sent = new Set(marks)
    const stored = new Set(
      (
        await db.selectFrom('messages').select('id').where('workspace_id', '=', scene.workspaceId).execute()
      ).map(({ id }) => String(id)),
    )
    return {
      contacts: {
        acknowledged: contacts.size,
        lost: [...contacts].filter(([phone, id]) => byPhone.get(phone)?.id !== id).length,
        doubled: rows.length - byPhone.size + rows.filter(({ created }) => created !== 1).length,
      },
      tags: {
        acknowledged: tagged.size,
        lost: [...tagged].filter((phone) => !byPhone.get(phone)?.has_tag).length,
        doubled: rows.filter(({ tagged: n }) => n > 1).length,
      },
      replies: {
        acknowledged: replies.size,
        lost: [...replies].filter(([mark, id]) => !sent.has(mark) || !stored.has(id)).length,
        doubled: marks.length - sent.size,
      },
      webhooks,
    }
  })
