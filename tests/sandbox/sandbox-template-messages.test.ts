import assert from 'node:assert/strict'
import { it } from 'node:test'
import {
  assertError,
  buildTemplateMessage,
  buildTemplates,
  CUSTOMER,
  postMessage,
  textParameters,
  writeAsCustomer,
} from './sandbox-calls.ts'
import { everySandbox, type SandboxFixture } from './sandbox-fixture.ts'

const imageHeader = {
  type: 'header',
  parameters: [{ type: 'image', image: { link: 'https://x.example/a.png' } }],
}
const button = (index: number, subType: string, parameter?: unknown) => ({
  type: 'button',
  sub_type: subType,
  index: String(index),
  parameters: parameter ? [parameter] : [],
})
const offer = {
  type: 'limited_time_offer',
  parameters: [{ type: 'limited_time_offer', limited_time_offer: { expiration_time_ms: 1 } }],
}
const url = button(1, 'url', { type: 'text', text: 'abc' })
const coupon = button(2, 'copy_code', { type: 'coupon_code', coupon_code: '25OFF' })
const rich = [imageHeader, textParameters('body', '25 %'), offer, url, coupon]
const carousel = (cardCount: number) => ({
  type: 'carousel',
  cards: Array.from({ length: cardCount }, (_, i) => ({
    card_index: i,
    components: [imageHeader, textParameters('body', 'x')],
  })),
})

const insertTemplates = (fixture: SandboxFixture) =>
  fixture.control('PUT', 'templates', { templates: buildTemplates(fixture.account) })

const acceptedBy = (fixture: SandboxFixture) => async (name: string, components?: unknown[]) =>
  assert.equal((await postMessage(fixture, buildTemplateMessage(name, components))).status, 200, name)

const rejectedBy =
  (fixture: SandboxFixture) =>
  async (code: number, details: RegExp, name: string, components?: unknown[]) => {
    const reply = await postMessage(fixture, buildTemplateMessage(name, components))
    assertError(reply, code === 132001 ? 404 : 400, code, details)
  }

everySandbox('Sandbox: template messages', (withSandbox) => {
  it('parameters that match the components of the template are accepted', async () => {
    await withSandbox(async (fixture) => {
      const templates = buildTemplates(fixture.account)
      assert.deepEqual((await fixture.control('PUT', 'templates', { templates })).body, {
        success: true,
        added: templates.length,
      })
      assert.equal((await fixture.control('PUT', 'templates', { templates })).body.added, 0)
      const assertAccepted = acceptedBy(fixture)
      await assertAccepted('plain', [textParameters('body', 'Ada', '7')])
      await assertAccepted('named', [
        { type: 'body', parameters: [{ type: 'text', parameter_name: 'first_name', text: 'Ada' }] },
      ])
      await assertAccepted('rich', rich)
      await assertAccepted('rich', [...rich, button(0, 'quick_reply', { type: 'payload', payload: 'p' })])
      await assertAccepted('cards', [carousel(2)])
    })
  })

  it('missing, surplus and mistyped parameters are rejected', async () => {
    await withSandbox(async (fixture) => {
      await insertTemplates(fixture)
      const assertRejected = rejectedBy(fixture)
      await assertRejected(132001, /template name \(none\) does not exist in en_US/, 'none')
      await assertRejected(132001, /does not exist/, 'waiting')
      await assertRejected(132015, /paused/, 'paused')
      await assertRejected(
        132000,
        /body: number of localizable_params \(1\) does not match the expected number of params \(2\)/,
        'plain',
        [textParameters('body', 'x')],
      )
      await assertRejected(132000, /header: number of localizable_params \(1\)/, 'plain', [
        textParameters('header', 'x'),
        textParameters('body', 'x', 'y'),
      ])
      await assertRejected(131008, /missing text value/, 'plain', [textParameters('body', 'x', '')])
      await assertRejected(100, /new-line/, 'plain', [textParameters('body', 'x', 'a\nb')])
      await assertRejected(132005, /too long/, 'plain', [textParameters('body', 'x', 'y'.repeat(1025))])
      await assertRejected(100, /Parameter name/, 'named', [textParameters('body', 'x')])
      await assertRejected(132012, /expected IMAGE, received UNKNOWN/, 'rich', rich.slice(1))
      for (const [end, type] of [
        ['mp4', /video\/mp4/],
        ['webp', /image\/webp/],
      ] as const)
        await assertRejected(131053, type, 'rich', [
          { type: 'header', parameters: [{ type: 'image', image: { link: `https://x.example/a.${end}` } }] },
          ...rich.slice(1),
        ])
      await assertRejected(132012, /expected IMAGE, received VIDEO/, 'rich', [
        { type: 'header', parameters: [{ type: 'video', video: { link: 'https://x.example' } }] },
        ...rich.slice(1),
      ])
      await assertRejected(
        131008,
        /expiration_time_ms/,
        'rich',
        rich.filter((c) => c !== offer),
      )
      await assertRejected(
        131008,
        /Button at index 1 of type Url requires a parameter/,
        'rich',
        rich.filter((c) => c !== url),
      )
      await assertRejected(
        131008,
        /Button at index 2 of type CopyCode requires/,
        'rich',
        rich.filter((c) => c !== coupon),
      )
      await assertRejected(131009, /no button at index 9/, 'rich', [...rich, button(9, 'url')])
      await assertRejected(132012, /number of cards/, 'cards', [carousel(1)])
    })
  })

  it('marketing templates to a customer who opted out fail', async () => {
    await withSandbox(async (fixture) => {
      await insertTemplates(fixture)
      await writeAsCustomer(fixture)
      await fixture.control('POST', 'preferences', {
        number_id: fixture.number,
        from: CUSTOMER,
        marketing: 'stop',
      })
      await acceptedBy(fixture)('rich', rich)
      await fixture.sandbox.drain()
      assert.equal(
        fixture.changes.find(({ field }) => field === 'user_preferences')!.value.user_preferences[0].value,
        'stop',
      )
      assert.equal(fixture.changes.at(-1)!.value.statuses[0].errors[0].code, 131050)
    })
  })
})
