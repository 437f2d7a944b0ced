import { isOutcomeUnknown } from '../../server/kernel/open-outcomes.ts'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type OutgoingMessage } from '../../server/provider/port.ts'
import type { Answer } from '../peer.ts'
import {
  captureProblem,
  createTestAdapter,
  errorAnswer,
  fixture,
  okAnswer,
  queueAnswers,
  sender,
  signal,
  summarizeProblem,
  textMessage,
  TOKEN,
  useAdapterFixture,
} from './adapter-fixture.ts'
import { recordedIds, seasonSale } from './recorded-exchanges.ts'

useAdapterFixture()

describe('Adapter: messages', () => {
  const sent = okAnswer({ messages: [{ id: 'wamid.1' }] })
  const envelope = { messaging_product: 'whatsapp', recipient_type: 'individual' }
  const cases: { name: string; message: OutgoingMessage; body: Record<string, unknown> }[] = [
    {
      name: 'a reply with context',
      message: { ...textMessage, replyTo: 'wamid.0' },
      body: {
        ...envelope,
        to: '16315551234',
        context: { message_id: 'wamid.0' },
        type: 'text',
        text: { body: 'Hi' },
      },
    },
    {
      name: 'a recipient without a phone number',
      message: { recipient: 'US.13491208655302741918', reference: 'r', body: textMessage.body },
      body: { ...envelope, recipient: 'US.13491208655302741918', type: 'text', text: { body: 'Hi' } },
    },
    ...[
      { type: 'image', image: { link: 'https://example.com/a.png', caption: 'A' } },
      { type: 'document', document: { id: '5', filename: 'a.pdf' } },
      {
        type: 'interactive',
        interactive: { type: 'button', body: { text: 'Which?' }, action: { buttons: [] } },
      },
      { type: 'reaction', reaction: { message_id: 'wamid.0', emoji: '👍' } },
      { type: 'template', template: { name: 'hello', language: { code: 'en_US' }, components: [] } },
    ].map((body) => ({
      name: `a message of type ${body.type}`,
      message: { to: '1', reference: 'r', body },
      body: { ...envelope, to: '1', ...body },
    })),
  ]
  for (const { name, message, body } of cases) {
    it(`send: ${name}`, async () => {
      queueAnswers(sent)
      assert.deepEqual(await fixture.provider.send(sender, message, signal), { id: 'wamid.1' })
      assert.deepEqual(
        fixture.peer.asked.map((asked) => JSON.parse(asked.body.toString())),
        [{ ...body, biz_opaque_callback_data: message.reference }],
      )
    })
  }

  it('findSent: returns the message of a reference, or absent', async () => {
    queueAnswers(okAnswer({ data: [{ id: 'wamid.1' }] }), okAnswer({ data: [] }))
    assert.deepEqual(await fixture.provider.findSent(sender, 'msg_1', signal), { id: 'wamid.1' })
    assert.equal(await fixture.provider.findSent(sender, 'msg_1', signal), 'absent')
    assert.deepEqual(
      fixture.peer.asked.map(({ method, path, query }) => [method, path, query]),
      Array(2).fill([
        'GET',
        `/base/v23.0/${recordedIds.phone}/messages`,
        { biz_opaque_callback_data: 'msg_1' },
      ]),
    )
  })

  it('findSent: unknown when the query is rejected or the response is unexpected', async () => {
    for (const answer of [
      errorAnswer(100, { error_subcode: 33 }),
      errorAnswer(190, {}, 401),
      { status: 404, body: '<html>' },
      okAnswer({ data: [{ id: 'a' }, { id: 'b' }] }),
      okAnswer({ messages: [] }),
      okAnswer(''),
    ]) {
      queueAnswers(answer)
      assert.equal(
        await fixture.provider.findSent(sender, 'msg_1', signal),
        'unknown',
        JSON.stringify(answer),
      )
    }
  })

  it('findSent: the outcome stays open when the provider is unavailable', async () => {
    for (const answer of [errorAnswer(2, {}, 500), errorAnswer(4, {}, 429), 'drop'] as Answer[]) {
      queueAnswers(answer)
      assert.ok(
        isOutcomeUnknown(await captureProblem(fixture.provider.findSent(sender, 'msg_1', signal))),
        JSON.stringify(answer),
      )
    }
  })
})

describe('Adapter: lists', () => {
  const buildTemplate = (n: number) => ({
    id: n,
    name: n === 3 ? 'other_hello' : 'hello',
    language: `l${n}`,
    status: 'APPROVED',
    category: 'UTILITY',
    components: [],
    rejected_reason: n === 1 ? 'NONE' : 'SCAM',
    extra: true,
  })
  const buildPage = (rows: unknown[], afterCursor?: string, next = afterCursor) =>
    okAnswer({
      data: rows,
      paging: {
        cursors: { before: 'b', after: afterCursor ?? 'end' },
        ...(next ? { next: `https://elsewhere.example/?access_token=${TOKEN}` } : {}),
      },
    })

  it('all pages are read by cursor', async () => {
    queueAnswers(
      buildPage([buildTemplate(1)], 'two'),
      buildPage([], 'three'),
      buildPage([buildTemplate(2), buildTemplate(3)]),
    )
    const rows = await fixture.provider.listTemplates(recordedIds.account, undefined, signal)
    assert.deepEqual(
      rows.map(({ id, language, rejectedReason }) => [id, language, rejectedReason]),
      [
        ['1', 'l1', null],
        ['2', 'l2', 'SCAM'],
        ['3', 'l3', 'SCAM'],
      ],
    )
    assert.deepEqual(
      fixture.peer.asked.map(({ path, query }) => [path, query.after, query.limit]),
      [undefined, 'two', 'three'].map((cursor) => [
        `/base/v23.0/${recordedIds.account}/message_templates`,
        cursor,
        '100',
      ]),
    )
  })

  it('listTemplates: by name returns only exact matches', async () => {
    queueAnswers(buildPage([buildTemplate(1), buildTemplate(2), buildTemplate(3)]))
    assert.deepEqual(
      (await fixture.provider.listTemplates(recordedIds.account, 'hello', signal)).map((t) => t.id),
      ['1', '2'],
    )
    assert.equal(fixture.peer.asked[0]!.query.name, 'hello')
  })

  it('repeated cursors and malformed pages are rejected', async () => {
    for (const answers of [
      [buildPage([], 'x'), buildPage([], 'x')],
      [okAnswer({ data: [], paging: { next: 'https://elsewhere.example' } })],
      [okAnswer({ data: [{ id: '1' }] })],
      [okAnswer({ data: {} })],
      [okAnswer({ data: [], paging: 7 })],
    ]) {
      queueAnswers(...answers)
      assert.deepEqual(
        summarizeProblem(
          await captureProblem(fixture.provider.listTemplates(recordedIds.account, undefined, signal)),
        ),
        ['upstream_unavailable', undefined, true],
      )
    }
    assert.deepEqual(fixture.peer.answers, [])
  })

  it('a field that the provider does not know is omitted on a second request', async () => {
    queueAnswers(
      errorAnswer(100, {
        message:
          '(#100) Tried accessing nonexisting field (rejected_reason) on node type (WhatsAppMessageTemplate)',
      }),
      buildPage([{ ...buildTemplate(1), rejected_reason: undefined }]),
    )
    assert.equal((await fixture.provider.listTemplates(recordedIds.account, undefined, signal)).length, 1)
    queueAnswers(
      errorAnswer(100),
      errorAnswer(100),
      okAnswer({ data: [{ id: '7', display_phone_number: '+1 631-555-5555' }] }),
    )
    assert.deepEqual(await fixture.provider.phoneNumbers(recordedIds.account, signal), [
      {
        id: '7',
        displayPhoneNumber: '+1 631-555-5555',
        verifiedName: null,
        status: 'UNKNOWN',
        qualityRating: null,
        messagingLimit: null,
      },
    ])
    assert.deepEqual(
      fixture.peer.asked.map(({ query }) => query.fields),
      [
        'id,name,language,status,category,rejected_reason,quality_score,components',
        'id,name,language,status,category,components',
        'id,display_phone_number,verified_name,status,quality_rating,' +
          'whatsapp_business_manager_messaging_limit,messaging_limit_tier',
        'id,display_phone_number,verified_name,status,quality_rating',
        'id,display_phone_number,verified_name,quality_rating',
      ],
    )
    queueAnswers(errorAnswer(100, { error_subcode: 33 }))
    assert.deepEqual(
      summarizeProblem(await captureProblem(fixture.provider.listTemplates('1', undefined, signal))),
      ['upstream_error', 'provider_not_found', false],
    )
  })
})

describe('Adapter: templates and short links', () => {
  it('createTemplate: a rejection is a duplicate only when the list contains the template', async () => {
    const rejection = errorAnswer(100, {
      error_subcode: 2388024,
      error_user_title: 'Message template components param is invalid',
      error_user_msg: 'Body parameter at index 3 contains a URL',
    })
    const listed = (language: string) =>
      okAnswer({ data: [{ id: '5', name: 'season_sale', language, status: 'APPROVED' }] })
    queueAnswers(rejection, listed('en_US'), rejection, listed('de'), rejection, 'drop')
    const [inList, notInList, listUnavailable] = [1, 2, 3].map(
      () => () => captureProblem(fixture.provider.createTemplate(recordedIds.account, seasonSale, signal)),
    )
    assert.deepEqual(summarizeProblem(await inList!()), ['conflict', 'duplicate', false])
    const invalid = await notInList!()
    assert.deepEqual(
      [...summarizeProblem(invalid), invalid.message],
      [
        'upstream_error',
        'provider_refused',
        false,
        'The provider does not accept the template. The provider says: ' +
          'Message template components param is invalid: Body parameter at index 3 contains a URL',
      ],
    )
    assert.deepEqual(summarizeProblem(await listUnavailable!()), ['conflict', 'duplicate', false])
  })

  it('requests: create, edit, unarchive and delete', async () => {
    queueAnswers(
      okAnswer({ id: 7, status: 'PENDING' }),
      okAnswer({ success: true }),
      okAnswer({ unarchived_templates: ['1'], failed_templates: { 2: 'Not archived: 16315551234' } }),
      okAnswer({ success: true }),
      okAnswer({ success: true }),
    )
    assert.deepEqual(
      await fixture.provider.createTemplate(
        recordedIds.account,
        { name: 'a', language: 'de', category: 'UTILITY', allowCategoryChange: false, components: [] },
        signal,
      ),
      { id: '7', status: 'PENDING', category: null },
    )
    await fixture.provider.editTemplate('7', { components: [], category: 'UTILITY' }, signal)
    assert.deepEqual(await fixture.provider.unarchiveTemplates(recordedIds.account, ['1', '2'], signal), {
      unarchived: ['1'],
      failed: { 2: 'Not archived: …' },
    })
    await fixture.provider.deleteTemplate(recordedIds.account, { name: 'a' }, signal)
    await fixture.provider.deleteLink(sender, 'ANED2T5QRU7HG1', signal)
    assert.deepEqual(
      fixture.peer.asked.map(
        ({ method, path, query, body }) => `${method} ${path} ${JSON.stringify(query)} ${body}`,
      ),
      [
        `POST /base/v23.0/${recordedIds.account}/message_templates {} ` +
          '{"name":"a","language":"de","category":"UTILITY","allow_category_change":false,"components":[]}',
        'POST /base/v23.0/7 {} {"components":[],"category":"UTILITY"}',
        `POST /base/${recordedIds.account}/message_templates/unarchive {} {"hsm_ids":["1","2"]}`,
        `DELETE /base/v23.0/${recordedIds.account}/message_templates {"name":"a"} `,
        `DELETE /base/v23.0/${recordedIds.phone}/message_qrdls/ANED2T5QRU7HG1 {} `,
      ],
    )
  })

  it('a response without success leaves the outcome open', async () => {
    queueAnswers(okAnswer({ success: false }), okAnswer({}))
    assert.ok(
      isOutcomeUnknown(await captureProblem(fixture.provider.editTemplate('7', { components: [] }, signal))),
    )
    assert.ok(
      isOutcomeUnknown(await captureProblem(fixture.provider.deleteLink(sender, 'ANED2T5QRU7HG1', signal))),
    )
  })

  it('archiveTemplates: uses the configured archive URL', async () => {
    queueAnswers(okAnswer({ archived_templates: ['1'] }))
    assert.deepEqual(
      await createTestAdapter({ archiveUrl: `${fixture.peer.url}/archive/` }).archiveTemplates(
        recordedIds.account,
        ['1'],
        signal,
      ),
      { archived: ['1'], failed: {} },
    )
    assert.equal(fixture.peer.asked[0]!.path, `/archive/${recordedIds.account}/message_templates/archive`)
  })

  it('findLink: returns one short link, or undefined', async () => {
    const link = {
      code: 'ANED2T5QRU7HG1',
      prefilled_message: 'Hi',
      deep_link_url: 'https://wa.me/message/ANED2T5QRU7HG1',
    }
    queueAnswers(okAnswer({ data: [link] }), okAnswer({ data: [] }))
    assert.deepEqual(await fixture.provider.findLink(sender, link.code, signal), {
      code: link.code,
      message: 'Hi',
      url: link.deep_link_url,
      qrImageUrl: null,
    })
    assert.equal(await fixture.provider.findLink(sender, link.code, signal), undefined)
    assert.deepEqual(
      [fixture.peer.asked[0]!.path, fixture.peer.asked[0]!.query.code],
      [`/base/v23.0/${recordedIds.phone}/message_qrdls`, link.code],
    )
  })
})
