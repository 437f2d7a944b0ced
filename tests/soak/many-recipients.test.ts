import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'
import type { TestServer } from '../servers.ts'
import { recordTexts } from '../statements.ts'
import { createBulkScene, TEMPLATE } from '../bulk-messages/scene.ts'

const PHONES = 105_000
/** They have no phone, but an id at the messaging app that is one of those phones. */
const IDS = 25_000

/** Inserts contacts in statements that stay within the server's statement timeout. */
const insertContacts = async ({ db, app }: TestServer, workspaceId: string): Promise<void> => {
  for (let done = 0; done < PHONES + IDS; done += 5000)
    await sql`
      insert into contacts (workspace_id, phone, chatapp_user_id, created_at, updated_at)
      select ${workspaceId}::bigint, case when n <= ${PHONES} then (15550000000 + n)::text end,
        case when n > ${PHONES} then (15550000000 + n - ${PHONES})::text end,
        ${app.now()}::timestamptz, ${app.now()}::timestamptz
      from generate_series(${done}::bigint + 1, ${done}::bigint + 5000) as n`.execute(db)
}

everyDatabase(
  'A template to more contacts than recipients of one call',
  (server) => {
    it('is refused before all are read, unless those who follow may leave few enough', async () => {
      const { workspace, rehearse, send } = await createBulkScene(server(), [
        { name: 'same_for_all', category: 'MARKETING', components: [{ type: 'BODY', text: 'Hello.' }] },
      ])
      await insertContacts(server(), workspace.id)
      // Without values of contacts the database counts them.
      const { body: _, ...same } = { ...TEMPLATE, name: 'same_for_all' }
      for (const [input, statements] of [
        [{ dry_run: true }, 21],
        [{ dry_run: false }, 21],
        [{ dry_run: true, template: same }, 0],
        [{ dry_run: false, template: same }, 0],
      ] as const) {
        const read = await recordTexts(
          async () => {
            const { status, body, text } = await send(input)
            assert.equal(status, 400, text)
            assert.deepEqual(
              body.errors.map(({ pointer, code }: { pointer: string; code: string }) => [pointer, code]),
              [['#/filter', 'too_many']],
            )
          },
          (text) => text.includes('as withdrawn'),
        )
        // Of 5,000 contacts each.
        assert.equal(read.length, statements)
      }
      await sql`update contacts set dnd = true where workspace_id = ${workspace.id} and phone is null`.execute(
        server().db,
      )
      for (const template of [TEMPLATE, same]) {
        const { matched, recipients, left_out } = await rehearse({ template })
        assert.deepEqual(
          [matched, recipients, left_out],
          [PHONES + IDS, PHONES - IDS, [{ reason: 'do_not_disturb', count: 2 * IDS }]],
        )
      }
    })
  },
  { dedicated: true },
)
