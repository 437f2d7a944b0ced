import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import fc from 'fast-check'
import { SendTemplate } from '../../catalog/send-template.ts'
import type { TemplateDraft } from '../../catalog/templates/schemas.ts'
import { buildPayload } from '../../server/domains/templates/payload.ts'
import { describeSend } from '../../server/domains/templates/send-schema.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { createSandboxDriver, generatePhone, summarizeReply } from '../messaging/fixtures.ts'
import { validDrafts } from './draft-arbitraries.ts'
import { createTemplateFixture } from './template-fixture.ts'

type Json = Record<string, any>

const validator = new AjvJsonSchemaValidator()
const fits = (schema: Json, value: unknown): boolean => validator.getValidator(schema)(value).valid

const NOW = '2026-11-20T10:00:00.000Z'
const describeDraft = (draft: TemplateDraft) =>
  describeSend({ ...draft, components: JSON.parse(JSON.stringify(buildPayload(draft))) as unknown }, NOW)

describe('Templates: schema of a send', () => {
  it('the example of every template fits its schema and the operation', () => {
    fc.assert(
      fc.property(validDrafts, (draft) => {
        const { schema, example } = describeDraft(draft)!
        assert.ok(fits(schema, example), JSON.stringify([schema, example]))
        SendTemplate.parse(example)
      }),
      { numRuns: runs(200, 5000) },
    )
  })

  it('a template with products has no schema; one whose text is too long has no example', () => {
    const row = { name: 'a', language: 'en', category: 'MARKETING' }
    const body = { type: 'BODY', text: 'Look at {{1}} now.' }
    const catalog = { type: 'BUTTONS', buttons: [{ type: 'CATALOG', text: 'All' }] }
    assert.equal(describeSend({ ...row, components: [body, catalog] }, NOW), undefined)
    assert.deepEqual(
      describeSend({ ...row, components: [{ ...body, text: `${'x'.repeat(1100)} {{1}}.` }] }, NOW)?.example,
      null,
    )
  })

  it('named variables and samples that cannot be sent are described too', () => {
    const { schema, example } = describeSend(
      {
        name: 'a',
        language: 'en',
        category: 'UTILITY',
        components: [
          {
            type: 'BODY',
            text: 'Hello {{first_name}}, your code {{code}} is here.',
            example: {
              body_text_named_params: [
                { param_name: 'code', example: 'line\nbreak' },
                { param_name: 'first_name', example: 'Ada' },
              ],
            },
          },
          {
            type: 'HEADER',
            format: 'IMAGE',
            example: { header_handle: ['https://cdn.example.com/a.png?signature=1'] },
          },
        ],
      },
      NOW,
    )!
    assert.deepEqual(example, {
      name: 'a',
      language: 'en',
      header: { media_url: 'https://cdn.example.com/a.png?signature=1' },
      body: ['Ada', 'sample'],
    })
    const { prefixItems } = (schema['properties'] as Json)['body']
    assert.match(prefixItems[0].description, /\{\{first_name\}\}, such as "Ada"/)
  })
})

/** Returns the example with one thing wrong, or left out, or added, each with its name. */
const mutate = (example: Json): [string, Json][] => {
  const { body, buttons = [], cards, header } = example
  const drop = (name: string): Json =>
    Object.fromEntries(Object.entries(example).filter(([key]) => key !== name))
  return [
    ['as it is', example],
    ['an unknown member', { ...example, colour: 'red' }],
    ...(body
      ? ([
          ['no body', drop('body')],
          ['a value too few', { ...example, body: body.slice(1) }],
          ['a value too many', { ...example, body: [...body, 'x'] }],
          ['a blank value', { ...example, body: [' ', ...body.slice(1)] }],
          ['a line break', { ...example, body: ['a\nb', ...body.slice(1)] }],
          ['five spaces', { ...example, body: ['a     b', ...body.slice(1)] }],
          ['a value that is too long', { ...example, body: ['x'.repeat(1025), ...body.slice(1)] }],
        ] as [string, Json][])
      : ([['a body', { ...example, body: ['x'] }]] as [string, Json][])),
    ...(header
      ? ([
          ['no header', drop('header')],
          ['an empty header', { ...example, header: {} }],
          [
            'another header',
            { ...example, header: 'text' in header ? { media_url: 'https://a.example/' } : { text: 'x' } },
          ],
        ] as [string, Json][])
      : ([['a header', { ...example, header: { text: 'x' } }]] as [string, Json][])),
    ...(header?.media_url
      ? ([
          ['the handle of a sample', { ...example, header: { media_handle: '4::aW1hZ2UvanBlZw==:ARa' } }],
          ['both a URL and an id', { ...example, header: { ...header, media_handle: '77' } }],
        ] as [string, Json][])
      : []),
    ...buttons.flatMap((button: Json, i: number): [string, Json][] => [
      ['a button too few', { ...example, buttons: buttons.toSpliced(i, 1) }],
      ['a button twice', { ...example, buttons: [...buttons, button] }],
      ['no value of a button', { ...example, buttons: buttons.with(i, { index: button['index'] }) }],
      ['another index', { ...example, buttons: buttons.with(i, { ...button, index: 9 }) }],
      ...('coupon_code' in button
        ? ([
            [
              'a long code',
              { ...example, buttons: buttons.with(i, { ...button, coupon_code: 'X'.repeat(16) }) },
            ],
          ] as [string, Json][])
        : ([['a space in a URL', { ...example, buttons: buttons.with(i, { ...button, text: 'a b' }) }]] as [
            string,
            Json,
          ][])),
    ]),
    example['offer_expires_at']
      ? ['no end of the offer', drop('offer_expires_at')]
      : ['an end of an offer', { ...example, offer_expires_at: '2030-01-01T00:00:00Z' }],
    ...(cards
      ? ([
          ['a card too few', { ...example, cards: cards.slice(1) }],
          ['a card too many', { ...example, cards: [...cards, cards[0]] }],
          ['an empty card', { ...example, cards: [{}, ...cards.slice(1)] }],
        ] as [string, Json][])
      : ([['cards', { ...example, cards: [{}] }]] as [string, Json][])),
  ]
}

everyDatabase('Templates: schema of a send', (server) => {
  it('the example of an approved template is sent as it is; what the schema refuses, the send refuses', async () => {
    const { create, run, call, workspace, sandbox } = await createTemplateFixture(server())
    const { sent } = createSandboxDriver(server(), workspace)
    let count = 0
    const refused = new Set<string>()
    await fc.assert(
      fc.asyncProperty(validDrafts, async (draft) => {
        const created = await create({ ...draft, name: `t${count++}` })
        assert.equal(created.status, 201, created.text)
        const { id } = created.body
        if (draft.category !== 'AUTHENTICATION') await sandbox.review(id, 'approve')
        const { send_schema: schema, send_example: example } = await run('messaging_get_template', {
          template_id: id,
        })
        const phone = generatePhone()
        const send = (template: Json, options: object) =>
          call('messaging_send_template', { phone: `+${phone}`, template, ...options }, { confirm: 'send' })
        for (const [what, template] of mutate(example)) {
          const reply = await send(template, { dry_run: true })
          const isAccepted = fits(schema, template)
          assert.equal(
            reply.status,
            isAccepted ? 201 : 400,
            `${what}: ${JSON.stringify(template)} ${reply.text}`,
          )
          if (!isAccepted) refused.add(what)
        }
        const reply = await send(example, {})
        assert.equal(reply.status, 201, reply.text)
        assert.equal((await sent(phone)).length, 1)
      }),
      { numRuns: runs(20, 200) },
    )
    for (const what of [
      'a value too few',
      'a value too many',
      'a button too few',
      'no header',
      'a card too few',
    ])
      assert.ok(refused.has(what), what)
  })

  it('a file of another kind under a media header is refused', async () => {
    const { call, insert, workspace } = await createTemplateFixture(server())
    for (const format of ['IMAGE', 'VIDEO', 'DOCUMENT'])
      await insert({
        name: `with_${format.toLowerCase()}`,
        components: [
          { type: 'HEADER', format },
          { type: 'BODY', text: 'Look at this.' },
        ],
      })
    await server().sync(workspace.id)
    const send = async (format: string, header: Json) =>
      summarizeReply(
        await call(
          'messaging_send_template',
          {
            phone: `+${generatePhone()}`,
            template: { name: `with_${format.toLowerCase()}`, language: 'en_US', header },
            dry_run: true,
          },
          { confirm: 'send' },
        ),
      )
    const url = (end: string) => ({ media_url: `https://www.example.com/files/a${end}` })
    for (const [format, ends] of Object.entries({
      IMAGE: ['.jpg', '.PNG', '.jpeg?size=2', '', '.html', '.com/x', '?file=a.mp4'],
      VIDEO: ['.mp4', '.3gp', '/'],
      DOCUMENT: ['.pdf', '.bin'],
    }))
      for (const end of ends)
        assert.deepEqual(await send(format, url(end)), [201, undefined], `${format} ${end}`)
    for (const [format, ends] of Object.entries({
      IMAGE: ['.mp4', '.pdf', '.webp', '.gif'],
      VIDEO: ['.jpg', '.mov', '.pdf'],
      DOCUMENT: ['.docx', '.png', '.mp4'],
    }))
      for (const end of ends)
        assert.deepEqual(
          await send(format, url(end)),
          [400, 'invalid_input', 'template_values', '#/template/header/media_url wrong_type'],
          `${format} ${end}`,
        )
    assert.deepEqual(await send('IMAGE', { media_handle: '4::aW1hZ2UvanBlZw==:ARa' }), [
      400,
      'invalid_input',
      'template_values',
      '#/template/header/media_handle sample_handle',
    ])
  })
})
