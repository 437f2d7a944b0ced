import assert from 'node:assert/strict'
import { it } from 'node:test'
import { seasonSale } from '../provider/recorded-exchanges.ts'
import { assertError, buildTemplates, HOUR_MS } from './sandbox-calls.ts'
import { everySandbox, type SandboxFixture } from './sandbox-fixture.ts'

/** Creates a template, and returns readers of its status and of its status events. */
const createTemplate = async (fixture: SandboxFixture) => {
  const { body: created } = await fixture.call(
    'POST',
    `v23.0/${fixture.account}/message_templates`,
    seasonSale,
  )
  const listEvents = () =>
    fixture.changes
      .filter(({ field }) => field === 'message_template_status_update')
      .map(({ value }) => value.event)
  const getStatus = async () => (await fixture.call('GET', `v23.0/${created.id}?fields=status`)).body.status
  return { created, listEvents, getStatus }
}

everySandbox('Sandbox: templates', (withSandbox) => {
  it('review: automatic after two seconds, and on request', async () => {
    await withSandbox(async (fixture) => {
      const { created, listEvents, getStatus } = await createTemplate(fixture)
      assert.deepEqual([created.status, created.category], ['PENDING', 'MARKETING'])
      await fixture.sandbox.drain()
      assert.equal(await getStatus(), 'PENDING')
      fixture.clock.offsetMs += 2000
      await fixture.sandbox.drain()
      assert.deepEqual([await getStatus(), listEvents()], ['APPROVED', ['APPROVED']])
      const { value } = fixture.changes[0]!
      assert.deepEqual(
        [value.message_template_id, value.message_template_name, value.message_template_language],
        [Number(created.id), 'season_sale', 'en_US'],
      )

      await fixture.control('POST', 'review', {
        template_id: created.id,
        decision: 'reject',
        reason: 'Variables stand next to each other.',
      })
      await fixture.control('POST', 'review', { template_id: created.id, decision: 'pause' })
      assert.deepEqual((await fixture.call('POST', `v23.0/${created.id}/unpause`)).body, { success: true })
      await fixture.control('POST', 'review', {
        template_id: created.id,
        decision: 'category',
        category: 'UTILITY',
      })
      await fixture.sandbox.drain()
      assert.deepEqual(listEvents(), ['APPROVED', 'REJECTED', 'PAUSED', 'APPROVED'])
      assert.equal(fixture.changes[1]!.value.rejection_info.reason, 'Variables stand next to each other.')
      assert.deepEqual(
        [
          fixture.changes.at(-1)!.field,
          fixture.changes.at(-1)!.value.previous_category,
          fixture.changes.at(-1)!.value.new_category,
        ],
        ['template_category_update', 'MARKETING', 'UTILITY'],
      )
    })
  })

  it('edit, archive and unarchive; an archived template is deleted after 28 days', async () => {
    await withSandbox(async (fixture) => {
      const { created, listEvents, getStatus } = await createTemplate(fixture)
      fixture.clock.offsetMs += 2000
      await fixture.sandbox.drain()
      assert.deepEqual(
        (
          await fixture.call('POST', `v23.0/${created.id}`, {
            components: [{ type: 'BODY', text: 'Shop now.' }],
          })
        ).body,
        { success: true },
      )
      assertError(
        await fixture.call('POST', `v23.0/${created.id}`, { components: [{ type: 'BODY', text: 'Again.' }] }),
        400,
        100,
      )
      fixture.clock.offsetMs += 2000
      await fixture.sandbox.drain()
      assert.deepEqual(
        (await fixture.call('POST', `${fixture.account}/message_templates/archive`, { hsm_ids: created.id }))
          .body,
        { archived_templates: [created.id], failed_templates: {} },
      )
      assert.equal(await getStatus(), 'ARCHIVED')
      assert.deepEqual(
        (
          await fixture.call('POST', `${fixture.account}/message_templates/unarchive`, {
            hsm_ids: [created.id],
          })
        ).body,
        { unarchived_templates: [created.id], failed_templates: {} },
      )
      assert.equal(await getStatus(), 'APPROVED')
      await fixture.call('POST', `${fixture.account}/message_templates/archive`, { hsm_ids: [created.id] })
      fixture.clock.offsetMs += 29 * 24 * HOUR_MS
      await fixture.sandbox.drain()
      assert.equal(listEvents().at(-1), 'DELETED')
      assertError(await fixture.call('GET', `v23.0/${created.id}`), 400, 100)
    })
  })

  it('list: filters, fields and pagination', async () => {
    await withSandbox(async (fixture) => {
      const templates = buildTemplates(fixture.account)
      await fixture.control('PUT', 'templates', { templates })
      const list = async (query: string) =>
        (await fixture.call('GET', `v23.0/${fixture.account}/message_templates?${query}`)).body
      assert.deepEqual((await list('name=plain&fields=id,name')).data, [
        { name: 'plain', id: templates[0]!.id },
      ])
      assert.deepEqual(
        (await list('status=PAUSED,PENDING&fields=name')).data.map((t: { name: string }) => t.name),
        ['waiting', 'paused'],
      )
      const names: string[] = []
      let after: string | undefined = ''
      while (after !== undefined) {
        const page = await list(`limit=2&fields=name&after=${after}`)
        names.push(...page.data.map((t: { name: string }) => t.name))
        after = page.paging?.next ? page.paging.cursors.after : undefined
      }
      assert.deepEqual(names, templates.map((t) => t.name).reverse())
      assertError(
        await fixture.call('GET', `v23.0/${fixture.account}/message_templates?fields=id,poem`),
        400,
        100,
        /nonexisting field \(poem\)/,
      )
      assertError(await fixture.call('GET', `v23.0/${fixture.account}/message_templates?after=%00`), 400, 100)
      assert.equal(
        (await fixture.control('GET', `templates?account_id=${fixture.account}`)).body.data.length,
        templates.length,
      )
    })
  })
})
