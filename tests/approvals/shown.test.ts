import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { doorsOf, everyDatabase } from '../doors.ts'
import { openInbox } from '../cli/inbox-fixture.ts'
import { makeLoginCode } from '../oauth/browser.ts'
import { generatePhone } from '../messaging/fixtures.ts'
import { visit } from './page.ts'
import { callConfirming, createAgentScene, markApproved } from './scene.ts'

everyDatabase('What a person was shown is what they approve', (server) => {
  const createScene = async () => {
    const scene = await createAgentScene(server())
    const other = generatePhone()
    /** Messages to the customer go to another number from now on, on which they have written. */
    const changePhone = async () => {
      const input = { contact_id: scene.contactId, phone: `+${other}` }
      const { status } = await scene.person('crm_change_phone', input, { confirm: 'rotate' })
      assert.equal(status, 200)
      await scene.sandbox.say({ from: `+${other}`, text: 'My new number.' })
    }
    const countSent = async () =>
      (await Promise.all([scene.phone, other].map(scene.sandbox.sent))).map(({ length }) => length)
    const get = async (id: string) => (await scene.person('approvals_get', { approval_id: id })).body
    const askReply = async (text = 'Yes.') =>
      (await scene.ask(...scene.reply(text))).body.approval.id as string
    return { ...scene, other, changePhone, countSent, get, askReply }
  }

  it('at every door, after the number of the customer has changed', async () => {
    const scene = await createScene()
    const id = await scene.askReply()
    const { summary_version: shown } = await scene.get(id)
    assert.equal((await scene.ask('approvals_get', { approval_id: id })).body.summary_version, null)
    await scene.changePhone()
    for (const door of doorsOf(server().url, scene.workspace.owner.key))
      for (const dryRun of [true, false])
        for (const version of [undefined, shown as string]) {
          const { status, body, text } = await door.call('approvals_approve', {
            approval_id: id,
            ...(version === undefined ? {} : { summary_version: version }),
            ...(dryRun ? { dry_run: true } : {}),
          })
          assert.deepEqual(
            [status, body.code, body.reason, body.changed],
            [409, 'conflict', 'subject_changed', ['customer_phone']],
            `${door.name}: ${text}`,
          )
          assert.equal(text.includes(scene.other), false)
        }
    const now = await scene.get(id)
    assert.deepEqual([now.status, now.summary_version === shown], ['pending', false])
    const approval = { approval_id: id, summary_version: now.summary_version as string }
    assert.equal((await scene.person('approvals_approve', approval)).status, 200)
    await scene.work()
    assert.deepEqual(await scene.countSent(), [0, 1])
    assert.equal((await scene.get(id)).summary_version, null)
  })

  it('on the page that they loaded before, which then shows what changed', async () => {
    const scene = await createScene()
    const id = await scene.askReply()
    const url = `${server().url}/approvals/${id}`
    const browser = visit(url)
    await browser.load()
    const code = await makeLoginCode(server(), scene.workspace.id, scene.manager.staffId)
    const { text } = await browser.submit({ step: 'login', code })
    const getVersion = (html: string) => /name="version" value="([^"]+)"/.exec(html)![1]!
    await scene.changePhone()
    const written = { step: 'approve', text: 'Yes!' }
    const refused = await browser.submit({ ...written, version: getVersion(text) })
    assert.equal(refused.status, 400)
    assert.match(refused.text, /Changed since the call was shown: customer_phone/)
    assert.match(refused.text, /Yes!/)
    assert.deepEqual(await scene.countSent(), [0, 0])
    const approved = await browser.submit({ ...written, version: getVersion(refused.text) })
    assert.match(approved.text, /Approved/)
    await scene.work()
    assert.deepEqual(await scene.countSent(), [0, 1])
  })

  it('in the inbox, which shows the call anew and takes the next key', async () => {
    const scene = await createScene()
    const id = await scene.askReply()
    const { inbox, press, screen } = await openInbox(server(), scene.workspace)
    await press('4')
    await scene.changePhone()
    await press('y')
    assert.match(inbox.state.notice!, /customer_phone/)
    assert.match(screen(), new RegExp(scene.other))
    await press('y')
    assert.match(inbox.state.notice!, /: approved, it runs now$/)
    await scene.work()
    assert.deepEqual([(await scene.get(id)).status, await scene.countSent()], ['done', [0, 1]])
  })

  it('and what the client asks about, which is asked again', async () => {
    const scene = await createScene()
    await scene.setPolicy({ approval: 'client' })
    const at = { url: server().url, key: scene.agent.key }
    const sent = await callConfirming(at, scene.reply('Yes.'), scene.changePhone)
    assert.deepEqual([sent.questions, await scene.countSent()], [2, [0, 1]])
    assert.match(sent.question, new RegExp(scene.other))
  })

  it('until the call runs', async () => {
    const scene = await createScene()
    const id = await scene.askReply()
    await markApproved({ db: server().db, workspace: scene.workspace }, id)
    await scene.changePhone()
    await scene.work()
    const { status, outcome } = await scene.get(id)
    assert.deepEqual([status, outcome.reason, await scene.countSent()], ['failed', 'subject_changed', [0, 0]])
    assert.equal(
      outcome.detail,
      'Changed since the call was approved: customer_phone. It did not run. Ask for it again.',
    )
  })

  it('after a merge, an opt-out, and another address of a webhook endpoint; names change nothing', async () => {
    const scene = await createScene()
    const approve = async (id: string) => (await scene.person('approvals_approve', { approval_id: id })).body
    const id = await scene.askReply()
    await scene.person('crm_update_contact', { contact_id: scene.contactId, dnd: true, name: 'Ada B.' })
    assert.deepEqual((await approve(id)).changed, ['customer_dnd'])
    await scene.person('crm_update_contact', { contact_id: scene.contactId, dnd: false })
    const kept = (await scene.person('crm_upsert_contact', { phone: `+${generatePhone()}` })).body.id
    const pair = { contact_id: kept, other_contact_id: scene.contactId }
    await scene.person('crm_merge_contacts', pair, { confirm: 'delete' })
    assert.deepEqual((await approve(id)).changed, ['customer', 'customer_phone'])

    const { endpoint } = (await scene.person('webhooks_create_endpoint', { url: 'https://a.example.com/' }))
      .body
    const one = { endpoint_id: endpoint.id as string }
    await scene.person('webhooks_disable_endpoint', one)
    const enable = (await scene.ask('webhooks_enable_endpoint', one)).body.approval.id as string
    await scene.person('webhooks_update_endpoint', { ...one, url: 'https://b.example.com/' })
    assert.deepEqual((await approve(enable)).changed, ['endpoint'])
    await scene.person('webhooks_update_endpoint', { ...one, url: 'https://a.example.com/' })
    assert.equal((await approve(enable)).approval?.status, 'approved')
  })

  it('also when the provider has told who the customer is, by a message before or of the customer', async () => {
    const scene = await createScene()
    const unknown = { contact_id: scene.contactId }
    await sql`update contacts set chatapp_user_id = null where id = ${scene.contactId}`.execute(server().db)
    const [one, other] = [await scene.askReply(), await scene.askReply('No.')]
    const remove = (await scene.ask('crm_delete_contact', unknown)).body.approval.id as string
    await scene.person('approvals_approve', { approval_id: one })
    await scene.work()
    await server().settle()
    await scene.sandbox.say({ from: `+${scene.phone}`, text: 'Thanks.' })
    const known = (await scene.person('crm_get_contact', unknown)).body.chatapp_user_id
    assert.notEqual(known, null)
    for (const id of [other, remove])
      assert.equal((await scene.person('approvals_approve', { approval_id: id })).status, 200)
  })
})
