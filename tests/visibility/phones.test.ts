import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { catalog, type Operation } from '../../catalog/index.ts'
import { updateStaff } from '../../storage/workspace/admin.ts'
import { listAudit } from '../audit/audit-rows.ts'
import { callAs, doAs, plantContact } from '../calls.ts'
import { type Door, doorsOf, everyDatabase, everyDoor } from '../doors.ts'
import { plantConversation, receiveMessage } from '../inbox/conversations.ts'
import { runs } from '../level.ts'
import { ORDER_UPDATE } from '../messaging/send-template.ts'
import { makeWorkspace } from '../servers.ts'
import { createGuessScene, listGuesses, phoneOf, withoutGuess } from './guessing.ts'

/** The scene needs two of them. */
const KNOWN = Math.max(2, runs(3, 25))

/** Operations that take a phone, a text to find or a filter, but find nothing by a customer's phone. */
const WITHOUT_CUSTOMERS = /^(workspace_|webhooks_|messaging_list_|crm_list_|crm_update_saved_filter)/

/** Returns what the answers to these guesses are, without the guess: one, unless they tell them apart. */
const collectAnswers = async (
  door: Door,
  op: string,
  inputs: readonly Record<string, unknown>[],
  phones: readonly string[],
): Promise<Set<string>> => {
  const answers = new Set<string>()
  for (const [n, input] of inputs.entries()) {
    const reply = await door.call(op, input)
    assert.notEqual(reply.status, 500, op)
    answers.add(withoutGuess(reply, phones[n]!))
  }
  return answers
}

everyDatabase('Guessing hidden phone numbers', (server) => {
  it('a merge with a contact that has a guess in a field tells nothing of the number', async () => {
    const { workspace, agent, contactId } = await createGuessScene(server(), KNOWN)
    const run = doAs(server(), agent)
    const merge = async (n: number, preferOther: string[]) => {
      const { id } = await run('crm_upsert_contact', {
        phone: `+1555660000${n}`,
        attributes: { mobile: `+${phoneOf(n)}` },
      })
      const input = { contact_id: contactId, other_contact_id: id, prefer_other: preferOther }
      const rehearsed = await run('crm_merge_contacts', { ...input, dry_run: true })
      const { next_cursor: before } = await run('events_list', { after: 'now' })
      await run('crm_merge_contacts', input)
      const { data } = await run('events_list', { types: ['contact.updated'], after: before })
      // What comes back would tell whether the number that was written since is the one that is hidden.
      for (const more of [{ dry_run: true }, {}]) {
        const undone = await callAs(server(), agent)('crm_undo_contact_merge', {
          merged_contact_id: id,
          ...more,
        })
        assert.deepEqual([undone.status, undone.body.reason], [403, 'phone_hidden'], undone.text)
      }
      await doAs(server(), workspace.owner.key)('crm_undo_contact_merge', { merged_contact_id: id })
      return {
        fields: rehearsed.fields,
        changes: data.map((event: { data: { changes: string[] } }) => event.data.changes),
      }
    }
    for (const preferred of [[], ['attributes.mobile']])
      assert.deepEqual(await merge(0, preferred), await merge(1, preferred))
  })

  it('messages of the provider name no number, wherever they are shown', async () => {
    const workspace = await makeWorkspace(server())
    const { id } = await plantConversation(server(), workspace.id)
    const text = 'Ada changed from +15550107777 to +15550108888'
    await receiveMessage(server(), workspace.id, id, { type: 'SYSTEM', text })
    const { key } = await workspace.staff({ hide_phone_numbers: true })
    const calls: [string, Record<string, unknown>][] = [
      ['inbox_list_messages', { conversation_id: id }],
      ['inbox_get_conversation', { conversation_id: id }],
      ['inbox_search_conversations', {}],
      ['inbox_queue', {}],
      ['inbox_search_messages', { query: 'changed' }],
    ]
    for (const [op, input] of calls) {
      assert.match((await callAs(server(), workspace.owner.key)(op, input)).text, /15550107777/, op)
      const shown = (await callAs(server(), key)(op, input)).text
      assert.match(shown, /changed/, op)
      assert.doesNotMatch(shown, /15550107777|15550108888/, op)
    }
  })

  it('every operation that takes a phone, a query or a filter is tried', () => {
    const takesGuess = ({ input }: Operation) =>
      Object.keys(input.shape).some((field) => /phone|^query$|^filter$|^rows$/.test(field))
    const tried = Object.keys(listGuesses(phoneOf(0), '1'))
    assert.deepEqual(
      catalog
        .filter((op) => takesGuess(op) && !tried.includes(op.name) && !WITHOUT_CUSTOMERS.test(op.name))
        .map((op) => op.name),
      [],
    )
  })

  it('answers of every door are alike, byte for byte, whether a contact has the number or not', async () => {
    const { agent, testKey, contactId } = await createGuessScene(server(), KNOWN)
    const [rest, ops, mcp, cli] = doorsOf(server().url, agent) as [Door, Door, Door, Door]
    const everyPhone = Array.from({ length: runs(KNOWN + 1, 2 * KNOWN) }, (_, n) => phoneOf(n))
    // All doors share what decides: each but one gets one customer, and the first input of each operation.
    const some = (n: number) => [phoneOf(n), ...everyPhone.slice(KNOWN)]
    const viewers: [Door, string[], number?][] = [
      [ops, everyPhone],
      [rest, some(1), 1],
      [mcp, some(2), 1],
      [cli, some(0), 1],
      [doorsOf(server().url, testKey)[1]!, some(0), 1],
    ]
    for (const [door, phones, count = Infinity] of viewers) {
      const guesses = phones.map((phone) => listGuesses(phone, contactId))
      for (const [op, inputs] of Object.entries(guesses[0]!))
        for (const i of inputs.slice(0, count).keys()) {
          const tried = guesses.map((guess) => guess[op]![i]!)
          const answers = await collectAnswers(door, op, tried, phones)
          assert.equal(answers.size, 1, `${op} over ${door.name} ${[...answers].join('\n')}`)
        }
    }
  })

  it('the limit of the plan tells nothing either', async () => {
    const { agent, workspace, contactId } = await createGuessScene(server(), KNOWN, { contact_limit: KNOWN })
    const phones = Array.from({ length: 2 * KNOWN }, (_, n) => phoneOf(n))
    const guesses = phones.map((phone) => listGuesses(phone, contactId))
    for (const op of ['crm_upsert_contact', 'messaging_send_template']) {
      const answers = await collectAnswers(
        doorsOf(server().url, agent)[1]!,
        op,
        guesses.map((guess) => guess[op]![0]!),
        phones,
      )
      assert.deepEqual(
        [...answers].map((answer) => /"reason":"(\w+)"/.exec(answer)?.[1]),
        ['contact_limit'],
      )
    }
    // Others learn what would happen.
    const owner = callAs(server(), workspace.owner.key)
    const input = (n: number) => ({ phone: phoneOf(n), name: 'Grace', dry_run: true })
    assert.equal((await owner('crm_upsert_contact', input(0))).body.action, 'updated')
    assert.equal((await owner('crm_upsert_contact', input(KNOWN))).body.reason, 'contact_limit')
  })

  it('real changes may name so many phones a day, on every server; refusals are recorded', async () => {
    const { agent, workspace } = await createGuessScene(server(), KNOWN)
    const call = callAs(server(), agent)
    const again = callAs(
      server(),
      (await workspace.key((await doAs(server(), agent)('workspace_whoami')).staff.id)).key,
    )
    const save = (n: number, by = call) =>
      by('crm_upsert_contact', { phone: `+${phoneOf(n)}`, tags: ['Mine'] })
    const send = (n: number) =>
      call('messaging_send_template', { phone: phoneOf(n), template: ORDER_UPDATE }, { confirm: 'send' })
    // The first and 88 others were named before.
    assert.equal((await save(0)).status, 200)
    await sql`
      update phone_budgets set phones = phones || ${Array.from({ length: 88 }, (_, n) => phoneOf(n + 300))}::text[]
      where workspace_id = ${workspace.id}`.execute(server().db)
    await Promise.all(Array.from({ length: 9 }, (_, n) => save(n + 1)))
    // Dry runs count for nothing, and neither does what is no phone.
    assert.equal((await call('crm_upsert_contact', { phone: phoneOf(200), dry_run: true })).status, 200)
    assert.equal((await call('crm_upsert_contact', { phone: '+1 555' })).status, 400)
    assert.deepEqual([(await send(98)).status, (await save(99, again)).status], [201, 200])
    const { id } = (await save(0)).body
    const move = (n: number) =>
      call('crm_change_phone', { contact_id: id, phone: `+${phoneOf(n)}` }, { confirm: 'rotate' })
    for (const refused of [save(100), save(100, again), send(100), move(100)]) {
      const { status, body, headers } = await refused
      assert.deepEqual(
        [status, body.code, body.reason, body.limit],
        [429, 'rate_limited', 'phone_budget', 100],
      )
      assert.match(body.resets_at, /T00:00:00\.000Z$/)
      assert.ok(Number(headers['retry-after']) > 0 && Number(headers['retry-after']) <= 86_400)
    }
    // Phones of today are free, and so is everything by id.
    assert.deepEqual([(await save(0)).body.action, (await send(98)).status], ['unchanged', 201])
    const rows = await listAudit(server(), workspace)
    assert.equal(rows.filter((row: { outcome: string }) => row.outcome === 'refused').length, 4)
    assert.ok(!JSON.stringify(rows).includes(phoneOf(100)))
    // Each day has its own budget, and those of past days are deleted.
    await sql`
      update phone_budgets set day = day - interval '3 days'
      where workspace_id = ${workspace.id}`.execute(server().db)
    assert.equal((await save(100)).status, 200)
    await server().app.jobs.job('rate-bucket-retention').runOnce()
    const { rows: days } = await sql<{ phones: string[] }>`
      select phones from phone_budgets where workspace_id = ${workspace.id}`.execute(server().db)
    assert.deepEqual(
      days.map(({ phones }) => phones),
      [[phoneOf(100)]],
    )
    // Others have no budget.
    assert.equal(
      (await callAs(server(), workspace.owner.key)('crm_upsert_contact', { phone: phoneOf(100) })).status,
      200,
    )
  })

  it('an answer from before phones were hidden is masked when it is sent again', async () => {
    const workspace = await makeWorkspace(server())
    const owner = doAs(server(), workspace.owner.key)
    await owner('crm_create_custom_field', { key: 'mobile', type: 'phone' })
    const { key, staffId } = await workspace.staff({ role: 'agent' })
    const input = { phone: `+${phoneOf(0)}`, name: `Ada ${phoneOf(0)}`, attributes: { mobile: phoneOf(1) } }
    const save = (by: string) =>
      callAs(server(), by)('crm_upsert_contact', input, { idempotencyKey: 'the-same-key' })
    const first = await save(key)
    assert.equal(first.body.contact.phone, phoneOf(0))
    await updateStaff(server().db, workspace.id, staffId, { hide_phone_numbers: true }, undefined)
    const { key: newKey } = await workspace.key(staffId)
    const second = await save(newKey)
    assert.equal(second.headers['idempotent-replayed'], 'true')
    assert.ok(!second.text.includes('15557'), second.text)
    assert.deepEqual(
      { ...second.body.contact, updated_at: null },
      {
        ...(await doAs(server(), newKey)('crm_get_contact', { contact_id: second.body.id })),
        updated_at: null,
      },
    )
  })

  it('an answer of a saved filter, or of a job, is sent again as the record is shown now', async () => {
    const workspace = await makeWorkspace(server())
    const owner = doAs(server(), workspace.owner.key)
    await owner('crm_create_custom_field', { key: 'mobile', type: 'phone' })
    const contact = { phone: null, name: 'Ada', email: null, attrs: {}, tagIds: [], groupIds: [] }
    // More than are changed at once, without a job.
    for (let n = 0; n < 501; n++) await plantContact(server().db, workspace.id, contact, server().app.now())
    const phone = phoneOf(1)
    const calls = [
      ['crm_create_saved_filter', { name: 'Hers', filter: { phoneNumber: { eq: phone } } }],
      ['crm_update_contacts', { filter: { name: { contains: 'Ada' } }, attributes: { mobile: phone } }],
    ] as const
    const { staffId } = await workspace.staff({ role: 'manager' })
    const { key, keyId } = await workspace.key(staffId, { agent: true, phones: true })
    const showsPhones = async (): Promise<boolean[]> => {
      const shows: boolean[] = []
      for (const [op, input] of calls) {
        const { status, text } = await callAs(server(), key)(op, input, { idempotencyKey: op })
        assert.ok(status < 300, text)
        shows.push(text.includes(phone))
      }
      return shows
    }
    assert.deepEqual(await showsPhones(), [true, true])
    await sql`update api_keys set phones = false where id = ${keyId}`.execute(server().db)
    server().app.keyCache.keys.clear()
    assert.deepEqual(await showsPhones(), [false, false])
  })
})

everyDoor('Hidden phone numbers: imports', (test) => {
  test('staff from whom phones are hidden may not import, not even as a dry run', async ({
    as,
    workspace,
  }) => {
    const agent = as((await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key)
    for (const dry_run of [true, false]) {
      const { status, body } = await agent('crm_import_contacts', {
        rows: [{ phone: '+15550100042' }],
        dry_run,
      })
      assert.deepEqual([status, body.reason], [403, 'phone_hidden'])
      assert.match(body.detail, /one by one/)
    }
  })
})

everyDatabase('Names', (server) => {
  it('of a contact never stand in for the phone', async () => {
    const call = callAs(server(), (await makeWorkspace(server())).owner.key)
    const { body: made } = await call('crm_upsert_contact', {
      phone: '+15550100042',
      name: '+1 (555) 010-0042',
    })
    assert.equal(made.contact.name, null)
    await call('crm_upsert_contact', { phone: '+15550100042', name: 'Ada' })
    const again = await call('crm_upsert_contact', { phone: '+15550100042', name: '１５５５０１０００４２' })
    assert.deepEqual([again.body.action, again.body.contact.name], ['unchanged', 'Ada'])
    await call('crm_import_contacts', { rows: [{ phone: '+15550100043', name: '15550100043' }] })
    const { body } = await call('crm_search_contacts', { query: '0100043' })
    assert.equal(body.data[0].name, null)
    const refused = await call('crm_update_contact', { contact_id: made.id, name: '555 010 0042' })
    assert.deepEqual([refused.status, refused.body.errors[0].code], [400, 'not_a_name'])
  })

  it('are masked where they hold a number, and numbers are not written into them', async () => {
    const workspace = await makeWorkspace(server())
    const call = callAs(server(), workspace.owner.key)
    const agent = callAs(server(), (await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key)
    const { body: made } = await call('crm_upsert_contact', { phone: '+15550100042', name: 'Ada' })
    for (const number of ['15550100042', '15550999042', '١٥٥٥٠٩٩٩٠٤٢']) {
      const name = `Ada ${number} of Studio 54`
      await call('crm_update_contact', { contact_id: made.id, name })
      const { body } = await agent('crm_get_contact', { contact_id: made.id })
      assert.match(body.name, /^Ada \*{8}\S{3} of Studio 54$/)
      for (const [op, input] of [
        ['crm_update_contact', { contact_id: made.id, name }],
        ['crm_upsert_contact', { phone: '+15550100043', name }],
      ] as const)
        for (const rehearsal of [{}, { dry_run: true }]) {
          const refused = await agent(op, { ...input, ...rehearsal })
          assert.deepEqual([refused.status, refused.body.reason], [403, 'phone_hidden'])
        }
    }
    // Few digits are no guess: of a year, and no more.
    for (const [name, status] of [
      ['Studio 2026', 200],
      ['Studio 20261', 403],
      ['Studio 2 0 2 6 1', 403],
      ['Studio ٢٠٢٦١', 403],
    ] as const)
      assert.equal((await agent('crm_update_contact', { contact_id: made.id, name })).status, status, name)
  })
})
