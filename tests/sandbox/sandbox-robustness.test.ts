import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { runs } from '../level.ts'
import { seasonSale } from '../provider/recorded-exchanges.ts'
import {
  buildTemplateMessage,
  buildTemplates,
  CUSTOMER,
  textParameters,
  writeAsCustomer,
} from './sandbox-calls.ts'
import { buildTextMessage, everySandbox, type SandboxFixture } from './sandbox-fixture.ts'

type SandboxRequest = [method: string, path: string, body: Record<string, unknown>]
/** Returns one valid request of every kind, for mutation. */
const buildValidRequests = (fixture: SandboxFixture, templateId: string, wamid: string): SandboxRequest[] => [
  [
    'POST',
    `v23.0/${fixture.number}/messages`,
    buildTextMessage(CUSTOMER, 'Hi', { context: { message_id: wamid }, biz_opaque_callback_data: 'x' }),
  ],
  [
    'POST',
    `v23.0/${fixture.number}/messages`,
    buildTemplateMessage('rich', [
      textParameters('body', 'x'),
      { type: 'button', sub_type: 'url', index: 0, parameters: [{ type: 'text', text: 'x' }] },
    ]),
  ],
  [
    'POST',
    `v23.0/${fixture.number}/messages`,
    {
      ...buildTextMessage(CUSTOMER, ''),
      type: 'interactive',
      interactive: {
        type: 'list',
        body: { text: 'x' },
        action: { button: 'b', sections: [{ rows: [{ id: '1', title: 't' }] }] },
      },
    },
  ],
  [
    'POST',
    `v23.0/${fixture.number}/messages`,
    { ...buildTextMessage(CUSTOMER, ''), type: 'contacts', contacts: [{ name: { formatted_name: 'x' } }] },
  ],
  ['POST', `v23.0/${fixture.account}/message_templates`, { ...seasonSale }],
  ['POST', `v23.0/${templateId}`, { components: seasonSale.components, category: 'MARKETING' }],
  ['POST', `${fixture.account}/message_templates/archive`, { hsm_ids: ['1', '2'] }],
  [
    'POST',
    `v23.0/${fixture.number}/message_qrdls`,
    { prefilled_message: 'x', generate_qr_image: 'PNG', code: 'ABC' },
  ],
  ['POST', 'v23.0/app/uploads', { file_name: 'x', file_length: 5, file_type: 'image/png' }],
  [
    'POST',
    'control/say',
    {
      number_id: fixture.number,
      from: '123456',
      user_id: 'US.1',
      name: 'x',
      ad: {},
      message: { type: 'image', image: { data: 'AA==' } },
    },
  ],
  ['POST', 'control/faults', { on: 'media', to: '123456', code: 100, times: 1 }],
  ['POST', 'control/status', { message_id: wamid, status: 'read', code: 1 }],
  [
    'POST',
    'control/review',
    { template_id: templateId, decision: 'reject', reason: 'x', category: 'UTILITY' },
  ],
  ['POST', 'control/settings', { duplicates: 0, batch: 10, review_seconds: 2 }],
  [
    'PUT',
    'control/numbers',
    {
      numbers: [{ id: '9', account_id: '8', display_phone_number: '+1 650 555 1112', verified_name: 'x' }],
    },
  ],
  [
    'PUT',
    'control/templates',
    { templates: [{ id: '77', account_id: '8', name: 'x', language: 'en', components: [] }] },
  ],
  ['POST', 'control/preferences', { number_id: fixture.number, from: CUSTOMER, marketing: 'stop' }],
]

/** Values that break naive parsers. */
const hostileValue = fc.oneof(
  fc.constantFrom<unknown>(
    '',
    '\0',
    'a\0b',
    '\ud800',
    null,
    true,
    -1,
    2 ** 53,
    1e300,
    0.5,
    [],
    {},
    [null],
    [[]],
    'x'.repeat(5000),
    '__proto__',
    '{{1}}{{2}}',
    '9'.repeat(30),
    '😀',
    '%',
    'US.',
    '+',
  ),
  fc.jsonValue({ maxDepth: 2 }),
)
const mutation = fc.record({ at: fc.nat(60), value: hostileValue, drop: fc.boolean() })
/** Returns every member of an object or list, recursively, as its holder and key. */
const listMembers = (node: unknown): [Record<string, unknown>, string][] =>
  node === null || typeof node !== 'object'
    ? []
    : Object.keys(node).flatMap((key) => [
        [node as Record<string, unknown>, key] as [Record<string, unknown>, string],
        ...listMembers((node as Record<string, unknown>)[key]),
      ])

everySandbox('Sandbox: robustness', (withSandbox) => {
  it('a message whose phone and user id belong to two customers is rejected', async () => {
    await withSandbox(async (fixture) => {
      const say = (customer: Record<string, unknown>) =>
        fixture.call('POST', 'control/say', { number_id: fixture.number, text: 'Hello', ...customer })
      assert.equal((await say({ from: '15550100999' })).status, 200)
      assert.equal((await say({ user_id: 'US.77' })).status, 200)
      assert.equal((await say({ from: '15550100999', user_id: 'US.77' })).status, 400)
      assert.equal((await say({ from: '15550100998', user_id: 'US.77' })).status, 200)
    })
  })

  it('no malformed request causes a 5xx response', async () => {
    await withSandbox(async (fixture) => {
      const templates = buildTemplates(fixture.account)
      await writeAsCustomer(fixture)
      await fixture.control('PUT', 'templates', { templates })
      const wamid = await writeAsCustomer(fixture)
      const requests = buildValidRequests(fixture, templates[0]!.id, wamid)
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...requests),
          fc.array(mutation, { minLength: 1, maxLength: 3 }),
          async ([method, path, validBody], mutations) => {
            const body = structuredClone(validBody)
            for (const { at, value, drop } of mutations) {
              const members = listMembers(body)
              if (members.length === 0) break
              const [holder, key] = members[at % members.length]!
              if (drop) delete holder[key]
              else holder[key] = structuredClone(value)
            }
            const reply = await fixture.call(method, path, body)
            assert.ok(reply.status < 500, `${path} ${JSON.stringify(body)} ${JSON.stringify(reply.body)}`)
            await fixture.control('DELETE', 'faults')
          },
        ),
        { numRuns: runs(400, 1200) },
      )
      const paths = [
        '%00',
        '%ff',
        'v23.0',
        'v23.0/%00/messages',
        'control/x',
        'upload:x',
        'cdn/media/x',
        'cdn/qr/x.png',
        'cdn/qr/%00',
        `v23.0/${fixture.number}/message_qrdls?limit=x`,
        `v23.0/${fixture.number}/message_qrdls?after=OTk5OTk5OTk5OTk5OTk5OTk5OTk`,
        'x?access_token=1',
        `v23.0/${fixture.number}?fields=,`,
        'debug_token?input_token=%00',
      ]
      for (const path of paths)
        for (const method of ['GET', 'POST', 'DELETE', 'PUT'])
          assert.ok((await fixture.call(method, path)).status < 500, `${method} ${path}`)
      for (const body of ['{', '[]', '"x"', 'null', '{"a":'.repeat(5000)])
        assert.equal(
          (
            await fixture.call('POST', `v23.0/${fixture.number}/messages`, body, {
              'Content-Type': 'application/json',
            })
          ).status,
          400,
        )
    })
  })
})
