import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ErrorCode } from '../../catalog/errors.ts'
import type { Answer } from '../peer.ts'
import {
  captureProblem,
  fixture,
  okAnswer,
  queueAnswers,
  sender,
  sendText,
  signal,
  summarizeProblem,
  TOKEN,
  useAdapterFixture,
} from './adapter-fixture.ts'
import {
  findExchange,
  type RecordedExchange,
  recordedExchanges,
  recordedIds,
  seasonSale,
} from './recorded-exchanges.ts'

useAdapterFixture()

describe('Adapter: recorded exchanges', () => {
  const greeting = {
    message: "Hi! I'm interested in your products. Can you help me?",
    qrFormat: 'SVG' as const,
  }
  const latestOffers = "Hello! I'd like to know more about your latest offers."
  const callback = { url: 'https://crm.example.com/provider/webhook', verifyToken: 'T' }
  const duplicate = { data: [{ id: '5', name: 'season_sale', language: 'en_US', status: 'APPROVED' }] }
  /** A call of the adapter, what it returns or throws, and further responses that it needs. */
  type ReplayedCall = {
    call: () => Promise<unknown>
    result?: unknown
    problem?: [ErrorCode, string | undefined, boolean]
    moreAnswers?: Answer[]
  }
  const replayed: Record<string, ReplayedCall> = {
    'A1 create': {
      call: () => fixture.provider.createLink(sender, greeting, signal),
      result: {
        code: 'ANED2T5QRU7HG1',
        message: greeting.message,
        url: 'https://wa.me/message/ANED2T5QRU7HG1',
        qrImageUrl: 'https://scontent.../m1/v/t6/An-...',
      },
    },
    'A1 too long': {
      call: () => fixture.provider.createLink(sender, greeting, signal),
      problem: ['upstream_error', 'provider_refused', false],
    },
    'A1 bad token': {
      call: () => fixture.provider.createLink(sender, greeting, signal),
      problem: ['upstream_error', 'provider_access', false],
    },
    'A1 no permission': {
      call: () => fixture.provider.createLink(sender, greeting, signal),
      problem: ['upstream_error', 'provider_access', false],
    },
    'A1 no such number': {
      call: () => fixture.provider.createLink(sender, greeting, signal),
      problem: ['upstream_error', 'provider_not_found', false],
    },
    'A1 throttled': {
      call: () => fixture.provider.createLink(sender, greeting, signal),
      problem: ['upstream_unavailable', 'throttled', false],
    },
    'A1 fault': {
      call: () => fixture.provider.createLink(sender, greeting, signal),
      problem: ['upstream_unavailable', undefined, true],
    },
    'A1 update': {
      call: () =>
        fixture.provider.updateLink(sender, { code: 'ANED2T5QRU7HG1', message: latestOffers }, signal),
      result: {
        code: 'ANED2T5QRU7HG1',
        message: latestOffers,
        url: 'https://wa.me/message/ANED2T5QRU7HG1',
        qrImageUrl: null,
      },
    },
    'A2 list': {
      call: () => fixture.provider.listLinks(sender, signal),
      result: [
        {
          code: '5QBPAD2DC6L5A1',
          message: 'Show me Cyber Tuesday deals!',
          url: 'https://wa.me/message/5QBPAD2DC6L5A1',
          qrImageUrl: null,
        },
      ],
    },
    'A2 empty': { call: () => fixture.provider.listLinks(sender, signal), result: [] },
    'A3 create': {
      call: () => fixture.provider.createTemplate(recordedIds.account, seasonSale, signal),
      result: { id: '1689556908129832', status: 'PENDING', category: 'UTILITY' },
    },
    'A3 exists': {
      call: () => fixture.provider.createTemplate(recordedIds.account, seasonSale, signal),
      moreAnswers: [okAnswer(duplicate)],
      problem: ['conflict', 'duplicate', false],
    },
    'A4 delete': {
      call: () =>
        fixture.provider.deleteTemplate(
          recordedIds.account,
          { name: 'season_sale', id: '1689556908129832' },
          signal,
        ),
      result: undefined,
    },
    'A5 archive': {
      call: () => fixture.provider.archiveTemplates(recordedIds.account, ['1689556908129832', '42'], signal),
      result: {
        archived: ['1689556908129832'],
        failed: { 42: 'Only approved or rejected templates can be archived' },
      },
    },
    'A6 phone numbers': {
      call: () => fixture.provider.phoneNumbers(recordedIds.account, signal),
      result: [
        {
          id: '1906385232743451',
          displayPhoneNumber: '+1 631-555-5555',
          verifiedName: "Jasper's Market",
          status: 'LINKED',
          qualityRating: 'GREEN',
          messagingLimit: 'TIER_1K',
        },
      ],
    },
    'A7 subscribe': {
      call: () => fixture.provider.subscribe(recordedIds.account, undefined, signal),
      result: undefined,
    },
    'A7 subscribe elsewhere': {
      call: () => fixture.provider.subscribe(recordedIds.account, callback, signal),
      result: undefined,
    },
    'A7 unreachable': {
      call: () => fixture.provider.subscribe(recordedIds.account, callback, signal),
      problem: ['upstream_error', 'provider_refused', false],
    },
    'A8 send': {
      call: sendText,
      result: { id: 'wamid.HBgLMTYz...', customer: { phone: '16315551234', userId: null } },
    },
    '2.8 no such template': {
      call: () =>
        fixture.provider.send(
          sender,
          {
            to: '16315551234',
            reference: 'msg_01K...',
            body: { type: 'template', template: { name: 'x', language: { code: 'en_US' } } },
          },
          signal,
        ),
      problem: ['invalid_input', 'template_unavailable', false],
    },
  }

  const assertRequest = ({ request }: RecordedExchange): void => {
    const { method, path, query, headers, body } = fixture.peer.asked[0]!
    assert.deepEqual(
      [method, path],
      [request.method, `/base/${request.unversioned ? '' : `${recordedIds.version}/`}${request.path}`],
    )
    assert.equal(headers.authorization, `Bearer ${TOKEN}`)
    for (const [name, value] of Object.entries(request.query ?? {})) assert.equal(query[name], value)
    // Byte for byte, including the order of members.
    assert.equal(body.toString(), request.body === undefined ? '' : JSON.stringify(request.body))
    assert.equal(headers['content-type'], request.body === undefined ? undefined : 'application/json')
  }

  for (const { name, response } of recordedExchanges) {
    it(`${name}: the request is as recorded, and the response is mapped`, async () => {
      const {
        call,
        result,
        problem,
        moreAnswers = [],
      } = replayed[name] ?? assert.fail(`${name} is not replayed`)
      queueAnswers({ status: response.status, body: response.body }, ...moreAnswers)
      if (problem) assert.deepEqual(summarizeProblem(await captureProblem(call())), problem)
      else assert.deepEqual(await call(), result)
      assertRequest(findExchange(name))
      assert.equal(fixture.peer.asked.length, 1 + moreAnswers.length, 'the request is sent once')
    })
  }
})
