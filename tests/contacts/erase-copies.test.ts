import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { eventTypes, type EventTypeId } from '../../catalog/events.ts'
import { createEventId } from '../../server/ids.ts'
import { readContactIdentity } from '../../storage/privacy/erasure-start.ts'
import { eraseSandboxPerson } from '../../storage/privacy/erasure-steps.ts'
import { createAgentScene } from '../approvals/scene.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { createSandboxDriver, generatePhone } from '../messaging/fixtures.ts'
import { findColumnsWith, finishErasures } from '../person.ts'
import { makeWorkspace } from '../servers.ts'

everyDatabase(
  'An erasure',
  (server) => {
    it('leaves what the sandbox got of the person after it', async () => {
      const workspace = await makeWorkspace(server())
      const { db } = server()
      const run = doAs(server(), workspace.owner.key)
      const [phone, other] = [generatePhone(), generatePhone()]
      const sandbox = createSandboxDriver(server(), workspace)
      for (const from of [phone, other]) await sandbox.say({ from, name: 'Grace', text: 'Before' })
      const read = async (query: string) => {
        const [found] = (await run('crm_search_contacts', { query })).data
        return await readContactIdentity(db, workspace.id, found.id)
      }
      const otherSubject = await read(other)
      const digits = [phone, other].map((one) => one.replace('+', ''))
      /** An update that is due in an hour. */
      const plant = async (text: string): Promise<void> => {
        await sql`
          insert into sandbox_updates (account_id, field, value, due_at, created_at)
          select account_id, 'messages', ${JSON.stringify({ from: digits[0], text })}::text::json,
            clock_timestamp() + interval '1 hour', clock_timestamp()
          from channels where workspace_id = ${workspace.id} and account_id is not null limit 1`.execute(db)
      }
      await plant('Before')
      const subject = await read(phone)
      await plant('After')
      await sandbox.say({ from: phone, name: 'Grace', text: 'After' })
      await eraseSandboxPerson(db, workspace.id, subject)
      await eraseSandboxPerson(db, workspace.id, otherSubject)
      const list = async (rows: ReturnType<typeof sql<{ text: string }>>) =>
        (await rows.execute(db)).rows.map(({ text }) => text)
      const updates = sql<{ text: string }>`
        select value->>'text' as text from sandbox_updates where value->>'from' = ${digits[0]}`
      const messages = sql<{ text: string }>`
        select body->'text'->>'body' as text from sandbox_messages where wa_id = any(${digits}::text[])`
      const customers = sql<{ text: string }>`
        select wa_id as text from sandbox_customers where wa_id = any(${digits}::text[])`
      const left = [await list(updates), await list(messages), await list(customers)]
      assert.deepEqual(left, [['After'], ['After'], [digits[0]]])
    })

    it('leaves every event as the schema of its type says', async () => {
      const workspace = await makeWorkspace(server())
      const { db } = server()
      const run = doAs(server(), workspace.owner.key)
      const { group } = await run('crm_create_group', { name: 'Regulars' })
      const { contact } = await run('crm_upsert_contact', {
        phone: generatePhone(),
        name: 'Ada Lovelace',
        tags: ['Gold', 'Ada Lovelace'],
        group_ids: [group.id],
      })
      await run('crm_record_consent', {
        contact_id: contact.id,
        purpose: 'marketing',
        state: 'granted',
        source: 'form',
      })
      const planted = Object.entries(eventTypes).map(([type, { sample }]) => ({
        id: createEventId(),
        type,
        data: JSON.parse(
          JSON.stringify(sample, (name, value) => {
            if (name === 'contact_ids') return [contact.id]
            return name === 'contact_id' ? contact.id : value
          }).replaceAll(/"contact":\{"id":"\d+"/g, `"contact":{"id":"${contact.id}"`),
        ),
      }))
      for (const { id, type, data } of planted)
        await sql`
          insert into events (workspace_id, id, type, occurred_at, data)
          values (${workspace.id}, ${id}, ${type}, now(), ${JSON.stringify(data)}::text::jsonb)`.execute(db)
      await run('crm_erase_contact', { contact_id: contact.id })
      await finishErasures(server(), workspace.id)
      const { rows } = await sql<{ id: string; type: EventTypeId; data: any }>`
        select id, type, data from events where workspace_id = ${workspace.id}`.execute(db)
      for (const { type, data } of rows)
        assert.equal(
          eventTypes[type].data.safeParse(data).error,
          undefined,
          `${type} ${JSON.stringify(data)}`,
        )
      const ids = new Set(planted.map(({ id }) => id))
      const own = (type: EventTypeId) => rows.find((row) => row.type === type && !ids.has(row.id))!.data
      assert.deepEqual(
        own('contact.tags_added/1').tags.map(({ name }: { name: string }) => name),
        ['Gold', 'erased'],
      )
      assert.equal(own('contact.groups_added/1').groups[0].name, 'Regulars')
      const { purpose, channel, source } = own('consent.changed/1').consent
      assert.deepEqual([purpose, channel, source], ['marketing', 'all', 'form'])
      assert.doesNotMatch(JSON.stringify(rows), /Ada|Is my order/)
    })

    it('finds the person in jobs, calls for several, notes and spellings', async () => {
      const workspace = await makeWorkspace(server())
      const { db } = server()
      const run = doAs(server(), workspace.owner.key)
      const phone = generatePhone()
      const digits = phone.replace('+', '')
      const { contact } = await run('crm_upsert_contact', {
        phone,
        name: 'Wilhelmina Vexler',
      })
      const { contact: other } = await run('crm_upsert_contact', {
        phone: generatePhone(),
        name: 'Ann',
      })
      const spaced = `+${digits.slice(0, 1)} ${digits.slice(1, 4)} ${digits.slice(4)}`
      const arabic = digits.replaceAll(/\d/g, (digit) => String.fromCodePoint(0x660 + Number(digit)))
      const wide = digits.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))
      const spellings = [
        `${spaced} 2 times`,
        `2 ${spaced}`,
        `00${digits}`,
        spaced.replaceAll(' ', '\u2011'),
        spaced.replaceAll(' ', '\u00a0'),
        arabic,
        `Ring ${wide}!`,
      ]
      const insertJob = async (operation: string, state: string, input: object, ids: string[]) =>
        (
          await sql<{ id: string }>`
          with j as (insert into bulk_jobs (workspace_id, state, operation, input, staff_id, key_id, door,
              request_id, created_at, total)
            values (${workspace.id}, ${state}, ${operation}, ${JSON.stringify(input)}::text::jsonb,
              ${workspace.owner.staffId}, 1, 'rest', 'req_1', now(), 2) returning id),
          b as (insert into bulk_job_batches (workspace_id, job_id, no, record_ids, is_done)
            select ${workspace.id}, id, 0, ${ids}::bigint[], true from j)
          select id from j`.execute(db)
        ).rows[0]!.id
      const both = [contact.id, other.id]
      const texts = {
        template: { body: [...spellings, 'Friday'].map((text) => ({ text })) },
      }
      const shared = await insertJob('messaging_send_bulk', 'done', texts, both)
      const alone = await insertJob('crm_update_contacts', 'done', { attributes: { note: 'Likes tea' } }, [
        contact.id,
      ])
      const paused = await insertJob('messaging_send_bulk', 'paused', texts, both)
      await sql`
        insert into broadcast_sends (workspace_id, broadcast_id, job_id, input, left_out)
        values (${workspace.id}, 999999, ${paused}, ${JSON.stringify(texts)}::text::jsonb, '[]')`.execute(db)
      for (const description of spellings)
        await run('crm_create_saved_filter', {
          name: `Filter ${spellings.indexOf(description)}`,
          description,
          filter: { starred: { eq: true } },
        })
      await run('crm_create_custom_field', { key: 'remark', label: 'Remark', type: 'text' })
      await run('crm_update_contacts', {
        contact_ids: [contact.id],
        attributes: { remark: 'Hidden-one' },
      })
      await run('crm_update_contacts', {
        contact_ids: both,
        attributes: { remark: 'Hidden-both' },
      })
      const rows = [
        {
          phone,
          name: 'Wilhelmina Vexler',
          metadata: { secret: 'Hidden-row' },
        },
      ]
      await run('crm_import_contacts', { rows, dry_run: true })
      const agent = await workspace.staff({ name: 'Mina', role: 'manager' }, { agent: true })
      const asked = await callAs(server(), agent.key)(
        'crm_delete_contact',
        { contact_id: other.id },
        {
          confirm: 'delete',
        },
      )
      const approvalId = asked.body.approval.id
      await run('approvals_decline', {
        approval_id: approvalId,
        note: `Ask ${spaced} first`,
      })
      await run('crm_erase_contact', { contact_id: contact.id })
      // A paused broadcast reads its texts still: the erasure ends after it.
      for (let n = 0; n < 3; n++) {
        await sql`update runs set run_after = clock_timestamp() where kind = 'erasures'`.execute(db)
        await server().app.jobs.job('erasures').runOnce()
      }
      assert.equal((await run('crm_list_erasures', { state: 'done' })).data.length, 0)
      await sql`update bulk_jobs set state = 'done' where id = ${paused}`.execute(db)
      await finishErasures(server(), workspace.id)

      const inputs = await sql<{ id: string; input: any }>`
        select id, input from bulk_jobs where workspace_id = ${workspace.id}`.execute(db)
      const inputOf = (id: string) => inputs.rows.find((row) => row.id === id)!.input
      const emptied = [...spellings.map(() => ({ text: 'erased' })), { text: 'Friday' }]
      assert.deepEqual(inputOf(shared).template.body, emptied)
      assert.deepEqual(inputOf(alone), { attributes: {} })
      assert.deepEqual(inputOf(paused).template.body, emptied)
      const sends = await sql<{ input: any }>`
        select input from broadcast_sends where workspace_id = ${workspace.id}`.execute(db)
      assert.deepEqual(sends.rows[0]!.input.template.body, emptied)
      const { data: filters } = await run('crm_list_saved_filters')
      assert.deepEqual(
        filters.map((one: any) => one.description),
        spellings.map(() => null),
      )
      const audit = await sql<{ changes: unknown }>`
        select changes from audit_log where workspace_id = ${workspace.id}`.execute(db)
      assert.doesNotMatch(JSON.stringify(audit.rows), /Hidden|Vexler/)
      assert.equal((await run('approvals_get', { approval_id: approvalId })).note, null)
    })

    it('cancels and forgets calls of agents for several, of a merged contact, and by a filter', async () => {
      const scene = await createAgentScene(server())
      const make = async (name: string): Promise<string> =>
        (await scene.person('crm_upsert_contact', { phone: generatePhone(), name })).body.id
      const [person, twin, other] = [
        await make('Severina Quoll'),
        await make('Severina Quollings'),
        await make('Ann'),
      ]
      const merge = { contact_id: person, other_contact_id: twin }
      assert.equal((await scene.person('crm_merge_contacts', merge, { confirm: 'delete' })).status, 200)
      const ask = async (op: string, input: Record<string, unknown>): Promise<string> => {
        const { body, text } = await scene.ask(op, input)
        return body.approval?.id ?? assert.fail(text)
      }
      const both = { contact_ids: [person, other] }
      const ids = [
        await ask('crm_delete_contacts', both),
        await ask('crm_update_contacts', { ...both, dnd: false }),
        await ask('crm_export_contacts', both),
        await ask('crm_delete_contacts', { filter: { name: { contains: 'quol' } } }),
        await ask('crm_undo_contact_merge', { merged_contact_id: twin }),
      ]
      const { phone } = (await scene.person('crm_get_contact', { contact_id: person })).body
      const reason = `The sister of +${phone}`
      const left = await ask('crm_delete_contact', { contact_id: other, reason })
      const read = async (id: string) => (await scene.person('approvals_get', { approval_id: id })).body
      assert.equal((await read(left)).reason, reason)
      const erased = await scene.person('crm_erase_contact', { contact_id: person }, { confirm: 'erase' })
      assert.equal(erased.status, 202, erased.text)
      for (const id of ids) assert.equal((await read(id)).status, 'cancelled')
      await finishErasures(server(), scene.workspace.id)
      const { status, reason: kept } = await read(left)
      assert.deepEqual([status, kept], ['pending', null])
      assert.deepEqual(await findColumnsWith(server().db, ['quoll', phone]), [])
    })

    it('tells who may see a part of the workspace not of what it was', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const { id } = (await run('crm_upsert_contact', { phone: generatePhone(), tags: ['VIP'] })).contact
      const limited = await workspace.staff({ role: 'manager', channel_ids: ['1'] })
      const masked = await workspace.key(workspace.owner.staffId, { phones: false })
      const input = { contact_id: id }
      const { erasure: rehearsed } = await run('crm_erase_contact', { ...input, dry_run: true })
      assert.notDeepEqual(rehearsed.tables, [])
      const { erasure } = await run('crm_erase_contact', input)
      for (const { key } of [limited, masked]) {
        const read = doAs(server(), key)
        const again = await read('crm_erase_contact', { ...input, dry_run: true })
        const [listed] = (await read('crm_list_erasures')).data
        const got = await read('crm_get_erasure', { erasure_id: erasure.id })
        for (const shown of [again.erasure, listed, got]) assert.deepEqual(shown.tables, [])
      }
    })
  },
  { dedicated: true },
)
