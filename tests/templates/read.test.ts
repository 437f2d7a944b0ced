import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Template } from '../../catalog/templates/read.ts'
import type { Actor } from '../../server/kernel/context.ts'
import { showTemplate } from '../../server/domains/templates/view.ts'
import type { TemplateDetails } from '../../storage/templates/templates.ts'
import { everyDatabase } from '../doors.ts'
import { summarizeReply } from '../messaging/fixtures.ts'
import { acceptedDrafts } from './drafts.ts'
import { sampleHandles } from './samples.ts'
import { createTemplateFixture } from './template-fixture.ts'

everyDatabase('Templates: read', (server) => {
  const setUp = () => createTemplateFixture(server())

  it('list: ordered by name, searched in name and text, filtered, and paginated', async () => {
    const { run, insert } = await setUp()
    const body = (text: string) => ({
      components: [
        { type: 'HEADER', format: 'TEXT', text: 'wichtig' },
        { type: 'BODY', text },
      ],
    })
    await insert({
      name: 'c_order',
      ...body('Straße 50% off'),
      language: 'de',
      category: 'MARKETING',
      status: 'REJECTED',
    })
    await insert({ name: 'a_order', ...body('ΣΊΣΥΦΟΣ'), language: 'el' })
    await insert({ name: 'b_order', ...body('Hello'), language: 'en_US' })
    await insert({ name: 'b_order', ...body('Hallo'), language: 'de' })
    const listNames = async (input: object) =>
      (await run('messaging_list_templates', { ...input })).data.map(
        (t: { name: string; language: string }) => `${t.name} ${t.language}`,
      )
    assert.deepEqual(await listNames({}), ['a_order el', 'b_order en_US', 'b_order de', 'c_order de'])
    for (const [input, count] of [
      [{ search: 'ORDER' }, 4],
      [{ search: 'STRASSE' }, 1],
      [{ search: 'σίσυφος' }, 1],
      [{ search: '%' }, 1],
      [{ search: '_' }, 4],
      [{ search: 'wichtig' }, 0],
      [{ status: 'rejected' }, 1],
      [{ category: 'Marketing' }, 1],
      [{ language: 'DE' }, 2],
      [{ language: 'en-us' }, 1],
      [{ language: 'en' }, 0],
      [{ language: 'de', search: 'hallo', status: 'APPROVED' }, 1],
      [{ status: "x'; --", search: '\\' }, 0],
    ] as const)
      assert.equal((await run('messaging_list_templates', input)).total, count, JSON.stringify(input))
    const firstPage = await run('messaging_list_templates', { search: 'order', limit: 3 })
    const secondPage = await run('messaging_list_templates', {
      search: 'order',
      limit: 3,
      cursor: firstPage.next_cursor,
    })
    assert.deepEqual(
      [
        firstPage.total,
        firstPage.data.length,
        secondPage.total,
        secondPage.data[0].name,
        secondPage.next_cursor,
      ],
      [4, 3, null, 'c_order', null],
    )
    const details = await run('messaging_get_template', { template_id: secondPage.data[0].id })
    const { draft, send_schema, send_example, ...row } = details
    assert.deepEqual(row, secondPage.data[0])
    assert.ok(draft && send_schema && send_example)
  })

  it('list: every component is returned', async () => {
    const { run, create } = await setUp()
    for (const draft of acceptedDrafts) assert.equal((await create(draft)).status, 201)
    const { data } = await run('messaging_list_templates')
    const findByName = (name: string) => data.find((t: { name: string }) => t.name === name)
    const offer = findByName('spring_offer')
    assert.deepEqual(offer.limited_time_offer, { text: 'Ends soon', has_expiration: true })
    assert.deepEqual(
      offer.buttons.map(
        (b: {
          type: string
          coupon_code: string | null
          dynamic_url: boolean
          url_example: string | null
        }) => [b.type, b.coupon_code, b.dynamic_url, b.url_example],
      ),
      [
        ['COPY_CODE', 'SPRING25', false, null],
        ['URL', null, true, 'https://shop.example.com/sale'],
      ],
    )
    assert.deepEqual(offer.header, {
      format: 'IMAGE',
      text: null,
      variables: [{ index: 1, sample: null, media_sample: sampleHandles.IMAGE }],
    })
    assert.deepEqual(findByName('titled').header, {
      format: 'TEXT',
      text: 'For {{1}}',
      variables: [{ index: 1, sample: 'Ada', media_sample: null }],
    })
    assert.deepEqual(
      [findByName('titled').footer, findByName('titled').buttons.map((b: { type: string }) => b.type)],
      ['Thanks', ['QUICK_REPLY', 'PHONE_NUMBER', 'VOICE_CALL', 'FLOW']],
    )
    assert.deepEqual(
      [
        findByName('login_code').variable_count,
        findByName('login_code').body.text,
        findByName('login_code').buttons[0].type,
      ],
      [1, null, 'OTP'],
    )
    assert.deepEqual(
      [findByName('cards').carousel_cards, findByName('cards').buttons, findByName('cards').header],
      [2, [], null],
    )
  })

  it('sample upload: size limit and content of each media type', async () => {
    const { call } = await setUp()
    const upload = (content_type: string, bytes: number, start: string) => {
      const data = Buffer.alloc(bytes)
      data.write(start, 0, 'latin1')
      return call('messaging_upload_template_sample', {
        file_name: 'a',
        content_type,
        data: data.toString('base64'),
      })
    }
    const MiB = 1024 * 1024
    assert.deepEqual(summarizeReply(await upload('image/jpeg', 5 * MiB + 1, '\xff\xd8\xff')), [
      400,
      'invalid_input',
      '#/data too_large',
    ])
    assert.equal((await upload('image/jpeg', 5 * MiB, '\xff\xd8\xff')).status, 201)
    assert.deepEqual(summarizeReply(await upload('application/pdf', 16 * MiB + 1, '%PDF-1.7')), [
      400,
      'invalid_input',
      '#/data too_large',
    ])
    assert.equal((await upload('video/mp4', 5 * MiB + 1, '\0\0\0\x18ftypmp42')).status, 201)
    assert.equal((await upload('video/mp4', 9, '\xff\xd8\xff')).status, 400)
  })
})

// Zod compiles a schema when it is first used, which takes longer than a run.
const StrictTemplate = Template.strict()

describe('Templates: any components of the provider', () => {
  const componentType = fc.constantFrom<unknown>(
    'HEADER',
    'body',
    'BODY',
    'FOOTER',
    'BUTTONS',
    'CAROUSEL',
    'LIMITED_TIME_OFFER',
    'NEW_THING',
    null,
    7,
  )
  const memberValue = fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.jsonValue({ maxDepth: 3 }),
    fc.constantFrom<unknown>('{{1}} and {{name}}', [['Ada']], ['x'], 'https://a.example/{{1}}'),
  )
  const memberNames = [
    'format',
    'text',
    'example',
    'buttons',
    'cards',
    'limited_time_offer',
    'url',
    'phone_number',
    'flow_id',
    'header_text',
    'header_handle',
    'body_text',
    'body_text_named_params',
    'components',
  ]
  const component = fc
    .tuple(
      componentType,
      fc.dictionary(
        fc.constantFrom(...memberNames),
        fc.oneof(
          memberValue,
          fc.array(
            fc
              .tuple(componentType, fc.dictionary(fc.constantFrom(...memberNames), memberValue))
              .map(([type, fields]) => ({ ...fields, type })),
            { maxLength: 3 },
          ),
        ),
        { maxKeys: 6 },
      ),
    )
    .map(([type, fields]) => ({ ...fields, type }))

  it('are returned in the format of the schema', () => {
    const row: TemplateDetails = {
      id: '1',
      account_id: null,
      account_name: null,
      provider_id: null,
      name: 'x',
      language: 'en',
      category: null,
      sub_category: null,
      status: 'NEW',
      rejection_reason: null,
      quality_rating: null,
      meta_errors: null,
      archived_at: null,
      created_at: '2026-10-01T00:00:00.000Z',
      updated_at: '2026-10-01T00:00:00.000Z',
      version: 1,
      components: null,
    }
    for (const hidePhoneNumbers of [true, false]) {
      const actor = { staff: { role: 'agent', hidePhoneNumbers } } as Actor
      fc.assert(
        fc.property(
          fc.oneof(fc.array(component, { maxLength: 6 }), fc.jsonValue()),
          fc.constantFrom(null, 'AUTHENTICATION', 'NEW'),
          fc.jsonValue(),
          (components, category, meta_errors) => {
            StrictTemplate.parse(showTemplate(actor, { ...row, components, category, meta_errors }))
          },
        ),
        { numRuns: 1000 },
      )
    }
  })
})
