import assert from 'node:assert/strict'
import { it } from 'node:test'
import { doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { createTemplateScene, ORDER_UPDATE } from '../messaging/send-template.ts'
import { makeWorkspace } from '../servers.ts'

const SALE = { template: { ...ORDER_UPDATE, name: 'sale' } }
const TEMPLATES = [{}, { name: 'sale', category: 'MARKETING' }]

type Row = { purpose: string; channel: string; state: string; source: string; holds: boolean }
const show = ({ purpose, channel, state, source, holds }: Row) => [purpose, channel, state, source, holds]

everyDoor('Consent', (test) => {
  test('what a contact consented to is recorded and listed', async ({ call }) => {
    const { id } = (await call('crm_upsert_contact', { phone: '+15550100042' })).body
    const record = async (input: Record<string, unknown>) =>
      (await call('crm_record_consent', { contact_id: id, ...input })).body
    const rehearsed = await record({ state: 'granted', dry_run: true })
    assert.equal(rehearsed.changed, true)
    assert.equal((await call('crm_list_consents', { contact_id: id })).body.total, 0)

    const given = await record({
      state: 'granted',
      source: 'form',
      proof: 'Box ticked',
      at: '2026-01-02T03:04:05+01:00',
    })
    assert.deepEqual(
      [given.changed, given.consent.holds, given.consent.proof, given.consent.at],
      [true, true, 'Box ticked', '2026-01-02T02:04:05.000Z'],
    )
    assert.equal((await record({ state: 'granted', at: '2026-01-03T00:00:00Z' })).changed, false)
    assert.equal((await record({ state: 'withdrawn' })).changed, true)
    // Older than what is known.
    const late = await record({ state: 'granted', source: 'import', at: '2026-01-04T00:00:00Z' })
    assert.deepEqual([late.changed, late.consent.holds], [false, false])
    await record({ state: 'granted', purpose: 'research', channel: 'chatapp' })

    const { body: first } = await call('crm_list_consents', { contact_id: id, limit: 2 })
    const { body: rest } = await call('crm_list_consents', {
      contact_id: id,
      limit: 25,
      cursor: first.next_cursor,
    })
    assert.equal(first.total, 5)
    assert.deepEqual([...first.data, ...rest.data].map(show), [
      ['research', 'chatapp', 'granted', 'staff', true],
      ['marketing', 'all', 'granted', 'import', false],
      ['marketing', 'all', 'withdrawn', 'staff', true],
      ['marketing', 'all', 'granted', 'staff', false],
      ['marketing', 'all', 'granted', 'form', false],
    ])
    const { body: research } = await call('crm_list_consents', { contact_id: id, purpose: 'research' })
    assert.equal(research.total, 1)
    assert.equal((await call('crm_list_consents', { contact_id: '999999999' })).status, 404)
    assert.equal(
      (await call('crm_record_consent', { contact_id: '999999999', state: 'granted' })).status,
      404,
    )
    const future = { contact_id: id, state: 'granted', at: '2999-01-01T00:00:00Z' }
    assert.equal((await call('crm_record_consent', future)).status, 400)
  })
})

everyDatabase('Consent to marketing', (server) => {
  it('STOP withdraws it, so that marketing is refused and no other template; START takes that back', async () => {
    const { run, sandbox, phone, send } = await createTemplateScene(server(), TEMPLATES)
    await sandbox.say({ from: `+${phone}`, text: 'Please stop by' })
    await sandbox.say({ from: `+${phone}`, text: 'Start' })
    assert.equal((await send({ ...SALE, dry_run: true })).status, 201, 'no word')
    await sandbox.say({ from: `+${phone}`, text: ' “Désabonner”. ' })
    for (const input of [SALE, { ...SALE, dry_run: true }]) {
      const { status, body } = await send(input)
      assert.deepEqual([status, body.code, body.reason], [409, 'conflict', 'consent_withdrawn'])
    }
    assert.equal((await send({})).status, 201)
    const { id, dnd } = (await run('crm_search_contacts', { query: phone })).data[0]
    assert.equal(dnd, false)
    const { data } = await run('crm_list_consents', { contact_id: id })
    assert.deepEqual(
      [show(data[0]), data[0].proof.trim()],
      [['marketing', 'all', 'withdrawn', 'reply', true], '“Désabonner”.'],
    )
    // Turning off do-not-disturb undoes nothing that the customer wrote.
    await run('crm_update_contact', { contact_id: id, dnd: false })
    assert.equal((await send(SALE)).status, 409)
    await sandbox.say({ from: `+${phone}`, text: 'START' })
    assert.equal((await send(SALE)).status, 201)
    const events = (await run('events_list', { types: ['consent.changed'] })).data
    assert.deepEqual(
      events.map(({ data: { consent } }: any) => [consent.contact_id, consent.state, consent.source]),
      [
        [id, 'withdrawn', 'reply'],
        [id, 'granted', 'reply'],
      ],
    )
    // It takes back a word, and nothing that was withdrawn in another way.
    await run('crm_record_consent', { contact_id: id, state: 'withdrawn', source: 'form' })
    await sandbox.say({ from: `+${phone}`, text: 'START' })
    assert.equal((await send(SALE)).status, 409)
  })

  it('what is said of one type of channel and of all: the later holds', async () => {
    const { run, phone, send } = await createTemplateScene(server(), TEMPLATES)
    const { id } = await run('crm_upsert_contact', { phone: `+${phone}` })
    const [{ type: channel }] = (await run('workspace_channels')).data
    const record = (input: object) => run('crm_record_consent', { contact_id: id, ...input })
    const isRefused = async () => (await send({ ...SALE, dry_run: true })).status === 409
    await record({ state: 'withdrawn', channel: 'carrier_pigeon' })
    await record({ state: 'withdrawn', purpose: 'research' })
    assert.equal(await isRefused(), false)
    await record({ state: 'withdrawn', channel })
    assert.equal(await isRefused(), true)
    await record({ state: 'granted' })
    assert.equal(await isRefused(), false)
  })

  it('an opt-out at the provider is a withdrawal, which do-not-disturb turned off undoes', async () => {
    const { run, sandbox, phone, send } = await createTemplateScene(server(), TEMPLATES)
    const { id } = await run('crm_upsert_contact', { phone: `+${phone}` })
    await sandbox.fault({ to: `+${phone}`, code: 131050 })
    assert.equal((await send(SALE)).status, 409)
    const list = async () => (await run('crm_list_consents', { contact_id: id })).data.map(show)
    assert.deepEqual(await list(), [['marketing', 'all', 'withdrawn', 'provider', true]])
    await run('crm_update_contact', { contact_id: id, dnd: false })
    assert.deepEqual((await list())[0], ['marketing', 'all', 'granted', 'staff', true])
    assert.equal((await send(SALE)).status, 201)
  })

  it('sends at the same time as STOP: none is accepted after it', async () => {
    const { run, sandbox, phone, send } = await createTemplateScene(server(), TEMPLATES)
    await run('crm_upsert_contact', { phone: `+${phone}` })
    const stop = sandbox.say({ from: `+${phone}`, text: 'Stop' })
    const replies = await Promise.all([1, 2, 3].map(() => send(SALE)))
    for (const { status } of replies) assert.ok([201, 409].includes(status))
    await stop
    assert.equal((await send(SALE)).status, 409)
    assert.equal((await sandbox.sent(phone)).length, replies.filter(({ status }) => status === 201).length)
  })

  it('the proof is hidden from staff who see no phones or not all channels, and the event has none', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const { id } = await run('crm_upsert_contact', { phone: '+15550100042' })
    const said = { contact_id: id, state: 'granted', proof: 'Called +15550100042' }
    assert.equal((await run('crm_record_consent', said)).consent.proof, said.proof)
    const hidden = await workspace.staff({ hide_phone_numbers: true })
    // It may quote a message on another channel.
    const limited = await workspace.staff({ channel_ids: [] })
    for (const { key } of [hidden, limited]) {
      const see = doAs(server(), key)
      assert.equal((await see('crm_list_consents', { contact_id: id })).data[0].proof, null)
      assert.equal((await see('crm_record_consent', { ...said, dry_run: true })).consent.proof, null)
    }
    const { data } = await doAs(server(), hidden.key)('events_list', { types: ['consent.changed'] })
    assert.equal(data.length, 1)
    assert.doesNotMatch(JSON.stringify(data), /0100042/)
  })
})
