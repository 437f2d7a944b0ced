import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { normalizeText } from '../../catalog/text.ts'
import { toExcerpt } from '../../server/inbox/excerpt.ts'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace } from '../servers.ts'

/** Marks that are out of order, in a row: sorting them takes time that grows with the square of their number. */
const MARKS = '\u0f81'.repeat(60_000)

// Each of these took seconds to hours of the one thread, or of the database, before it was bounded.
everyDatabase('Texts that are slow on purpose', (server) => {
  it('a number of a million digits is refused at once', async () => {
    const { owner } = await makeWorkspace(server())
    const call = callAs(server(), owner.key)
    await call('crm_create_custom_field', { key: 'score', type: 'number' })
    const input = { phone: '+15550100042', attributes: { score: `${'1'.repeat(900_000)}x` } }
    const { status, body } = await call('crm_upsert_contact', input)
    assert.deepEqual([status, body.errors[0].pointer], [400, '#/attributes/score'])
  })

  it('spaces in braces are no placeholder', async () => {
    const { owner } = await makeWorkspace(server())
    const text = `{{${' '.repeat(4093)}{`
    for (const { call, name } of doorsOf(server().url, owner.key)) {
      const { status, body } = await call('messaging_create_quick_message', { code: 'slow', text })
      assert.deepEqual([status, body.errors?.[0]?.code ?? body.code], [400, 'placeholder_form'], name)
    }
  })

  it('marks in a row are decomposed and folded in pieces, by the database and here', async () => {
    const { rows } = await sql<{ words: string }>`
      select message_words(${`größe ${MARKS} end`}) as words`.execute(server().db)
    assert.match(rows[0]!.words, /^ grosse /)
    assert.ok(normalizeText(MARKS, 'NFKD').length <= 60)
    assert.match(
      toExcerpt(`hello ${MARKS}`, [{ words: ['hello'], forms: undefined } as never]),
      /^\*\*hello\*\*/,
    )
  })

  it('a message of marks alone is indexed with the others', async () => {
    const workspace = await makeWorkspace(server())
    const { id } = await plantConversation(server(), workspace.id)
    const run = doAs(server(), workspace.owner.key)
    for (let n = 0; n < 6; n++)
      await run('inbox_add_note', { conversation_id: id, text: `zebra ${n} ${MARKS.slice(0, 4000)}` })
    await server().app.jobs.job('message-search').runOnce()
    assert.equal((await run('inbox_search_messages', { query: 'zebra' })).data.length, 6)
  })

  it('a time that PostgreSQL does not take is a 400 that names its field', async () => {
    const { owner } = await makeWorkspace(server())
    const call = callAs(server(), owner.key)
    const { body: made } = await call('crm_upsert_contact', { phone: '+15550100042' })
    const contact = { contact_id: made.contact.id, state: 'granted' }
    for (const [op, input, field] of [
      ['events_list', { from: '2026-01-01T00:00:00+16:00' }, 'from'],
      ['events_list', { from: `2026-01-01T00:00:00.${'1'.repeat(400)}Z` }, 'from'],
      ['audit_list', { from: '2026-01-01T00:00:00+23:00' }, 'from'],
      ['webhooks_list_deliveries', { to: '2026-01-01T00:00:00-16:00' }, 'to'],
      ['inbox_search_messages', { query: 'hello', from: '2026-01-01T00:00:00+16:00' }, 'from'],
      ['crm_record_consent', { ...contact, at: '0000-01-01T00:00:00Z' }, 'at'],
      ['crm_record_consent', { ...contact, at: '0001-01-01T00:00:00+10:00' }, 'at'],
    ] as const) {
      const { status, body, text } = await call(op, input)
      assert.deepEqual([status, body.errors?.at(-1)?.pointer], [400, `#/${field}`], text)
    }
    const early = { query: 'hello', from: '0000-01-01T00:00:00Z' }
    assert.equal((await call('inbox_search_messages', early)).status, 200)
  })
})
