import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { callAs } from '../calls.ts'
import { plantConversation } from './conversations.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace, startSharedServers, type TestKey, type TestServer } from '../servers.ts'
import { databases } from '../databases.ts'

const CLAIM_COUNT = 100

/** Ten agents claim one conversation at once, over the servers in turn; exactly one claim succeeds. */
const claimConcurrently = async (servers: readonly TestServer[]): Promise<void> => {
  const server = servers[0]!
  const workspace = await makeWorkspace(server)
  const { id } = await plantConversation(server, workspace.id)
  const staff: TestKey[] = []
  for (let n = 0; n < 10; n++) staff.push(await workspace.staff({ name: `Agent ${n}` }))
  const replies = await Promise.all(
    Array.from({ length: CLAIM_COUNT }, async (_, n) => {
      const { key, staffId } = staff[n % staff.length]!
      return {
        staffId,
        ...(await callAs(servers[n % servers.length]!, key)('inbox_assign_conversation', {
          conversation_id: id,
          only_if_unassigned: true,
          staff_id: staffId,
        })),
      }
    }),
  )
  const winners = replies.filter(({ status }) => status === 200)
  const losers = replies.filter(({ status, body }) => status === 409 && body.reason === 'already_assigned')
  assert.deepEqual(
    [winners.length, losers.length],
    [1, CLAIM_COUNT - 1],
    replies.find(({ status }) => status !== 200 && status !== 409)?.text ?? 'one winner',
  )
  const {
    rows: [row],
  } = await sql<{ staff: string | null; events: string }>`
    select assigned_staff_id as staff, (
      select count(*) from events
      where workspace_id = ${workspace.id} and type = 'conversation.assigned/1') as events
    from conversations where workspace_id = ${workspace.id} and id = ${id}`.execute(server.db)
  assert.deepEqual([row!.staff, row!.events], [winners[0]!.body.conversation.assignee_staff_id, '1'])
  assert.equal(row!.staff, winners[0]!.staffId)
}

everyDatabase('Concurrent claims', (server) => {
  it('only_if_unassigned: one of a hundred claims succeeds', () => claimConcurrently([server()]))
})

describe(
  'Concurrent claims over two servers',
  { skip: databases.includes('postgresql') ? false : 'WCRM_TEST_POSTGRES_URL is not set' },
  () => {
    it('only_if_unassigned: one of a hundred claims succeeds', async () => {
      const { servers, close } = await startSharedServers(2)
      try {
        for (let round = 0; round < 3; round++) await claimConcurrently(servers)
      } finally {
        await close()
      }
    })
  },
)
