import assert from 'node:assert/strict'
import { it } from 'node:test'
import { importContacts, MANY, runJobs } from '../bulk-jobs/many.ts'
import { everyDatabase } from '../doors.ts'
import { insertSandboxTemplates } from '../messaging/send-template.ts'
import { createAgentScene } from './scene.ts'

everyDatabase('The summary of a call that waits', (server) => {
  const createScene = async () => {
    const scene = await createAgentScene(server())
    const summaryOf = async (op: string, input: object, ask = scene.ask): Promise<string[]> => {
      const { status, body, text } = await ask(op, input as Record<string, unknown>)
      assert.equal(status, 202, text)
      return (await scene.person('approvals_get', { approval_id: body.approval.id })).body.summary as string[]
    }
    return { ...scene, summaryOf }
  }

  it('names the contact that the undo of a merge brings back, and the one it comes out of', async () => {
    const scene = await createScene()
    const save = async (phone: string, name: string) =>
      (await scene.person('crm_upsert_contact', { phone, name })).body.id as string
    const [kept, other] = [
      await save('+15550100961', 'Grace Hopper'),
      await save('+15550100962', 'G. Hopper'),
    ]
    const merge = { contact_id: kept, other_contact_id: other }
    const merged = await scene.person('crm_merge_contacts', merge, { confirm: 'delete' })
    assert.equal(merged.status, 200, merged.text)
    const summary = (await scene.summaryOf('crm_undo_contact_merge', { merged_contact_id: other })).join('\n')
    assert.match(summary, new RegExp(`^Comes back: G\\. Hopper, 15550100962, id ${other}$`, 'm'))
    assert.match(summary, new RegExp(`^Out of: Grace Hopper, 15550100961, id ${kept}$`, 'm'))
  })

  it('says what the job does that is undone, and who began it', async () => {
    const scene = await createScene()
    await importContacts(scene.person, MANY, () => ({ name: 'Many', tags: ['Press'] }))
    const filter = { name: { eq: 'Many' } }
    const input = { filter, tags: ['VIP'] }
    const dry = await scene.ask('crm_tag_contacts', { ...input, dry_run: true }, { plan: 'show' })
    const { job } = (await scene.ask('crm_tag_contacts', input, { plan: dry.body.plan.token })).body
    await runJobs(server())
    const summary = (await scene.summaryOf('jobs_undo', { job_id: job.id })).join('\n')
    const [first] = /^Job: .*$/m.exec(summary) ?? []
    assert.match(
      first ?? summary,
      new RegExp(
        `^Job: Add tags to contacts, done, ${MANY} of ${MANY} done, ${MANY} changed, .*Mina, id ${job.id}$`,
      ),
    )
    assert.match(summary, /^Input of the job: /m)
  })

  it('names the conversations of a call on several', async () => {
    const scene = await createScene()
    await scene.setPolicy({ operations: { inbox_close_conversations: 'ask' } })
    const summary = await scene.summaryOf('inbox_close_conversations', { conversation_ids: [scene.id] })
    const [line] = summary.filter((one) => one.startsWith('Conversation: '))
    assert.match(line ?? summary.join('\n'), new RegExp(`Ada.*Main line.*id ${scene.id}$`))
  })

  it('says how many of a list would fail', async () => {
    const scene = await createScene()
    await insertSandboxTemplates(server(), scene.workspace, { name: 'one' })
    const { data } = (await scene.person('messaging_list_templates', {})).body
    const ids = [data[0].id as string, '999999']
    const archived = await scene.summaryOf('messaging_archive_templates', { ids })
    assert.ok(archived.includes('Dry run: 1 would fail'), archived.join('\n'))
    const contact_ids = [scene.contactId, '999999']
    const [dryRun] = (await scene.summaryOf('crm_delete_contacts', { contact_ids })).slice(-1)
    assert.match(dryRun!, /^Dry run: 1 would fail; .*succeeded 1/)
  })

  it('tells a warning as one to the caller, and findings that are none of the fields of the call', async () => {
    const scene = await createScene()
    const contact = { contact_id: scene.contactId }
    const blind = await scene.workspace.key(scene.manager.staffId, { agent: true, phones: false })
    const change = { ...contact, phone: '+15550100963' }
    const phone = await scene.summaryOf('crm_change_phone', change, scene.as(blind.key))
    assert.match(phone.at(-1)!, /^Warning to the caller: Phone numbers are hidden from you/)
    assert.match(phone.at(-2)!, /^Dry run: no errors; changed true$/)
    const dnd = await scene.summaryOf('crm_update_contact', { ...contact, dnd: false })
    assert.equal(dnd.at(-1), 'Dry run: no errors')
  })
})
