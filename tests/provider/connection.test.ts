import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Problem } from '../../server/kernel/problem.ts'
import { refusalRules } from '../../server/provider/adapter/refusal-rules.ts'
import type { Provider } from '../../server/provider/port.ts'
import type { Answer } from '../peer.ts'
import {
  captureProblem,
  createTestAdapter,
  fixture,
  queueAnswers,
  sender,
  sendText,
  signal,
  smallFile,
  summarizeProblem,
  textMessage,
  TOKEN,
  useAdapterFixture,
} from './adapter-fixture.ts'
import { seasonSale } from './recorded-exchanges.ts'
import { downloadFile } from './download.ts'

useAdapterFixture()

describe('Adapter: connection', () => {
  it('a connection lost after the request leaves the outcome open', async () => {
    const broken: Answer[] = [
      'drop',
      (response) => {
        response.writeHead(200, { 'Content-Length': '500' })
        response.write('{"messages"')
        setImmediate(() => response.destroy())
      },
    ]
    for (const answer of broken) {
      queueAnswers(answer)
      assert.deepEqual(summarizeProblem(await captureProblem(sendText())), ['timeout', undefined, true])
    }
    assert.equal(fixture.peer.asked.length, 2, 'no request is repeated')
  })

  it('timeout: a slow response is aborted, and the outcome stays open', async () => {
    const slow: Answer[] = [
      'silent',
      (response) => {
        response.writeHead(200)
        response.write('{')
      },
    ]
    for (const answer of slow) {
      queueAnswers(answer)
      assert.deepEqual(
        summarizeProblem(
          await captureProblem(createTestAdapter({ timeoutMs: 100 }).send(sender, textMessage, signal)),
        ),
        ['timeout', undefined, true],
      )
    }
    assert.equal(fixture.peer.asked.length, 2)
  })

  it('abort: the signal of the caller ends the request', async () => {
    const controller = new AbortController()
    queueAnswers('silent')
    const call = captureProblem(fixture.provider.send(sender, textMessage, controller.signal))
    controller.abort()
    assert.deepEqual(summarizeProblem(await call), ['timeout', undefined, true])
    fixture.peer.asked.length = 0
    assert.deepEqual(
      summarizeProblem(await captureProblem(fixture.provider.send(sender, textMessage, controller.signal))),
      ['timeout', undefined, true],
    )
    assert.deepEqual(fixture.peer.asked, [])
  })

  it('a connection that cannot be opened has no effect', async () => {
    const closedUrl = await new Promise<string>((resolve) => {
      const server = createServer().listen(0, '127.0.0.1', () => {
        const address = server.address()
        server.close(() => resolve(`http://127.0.0.1:${typeof address === 'object' ? address!.port : 0}`))
      })
    })
    for (const baseUrl of [closedUrl, 'http://no-such-name.invalid']) {
      const problem = await captureProblem(createTestAdapter({ baseUrl }).send(sender, textMessage, signal))
      assert.deepEqual(summarizeProblem(problem), ['upstream_unavailable', 'unreachable', false], baseUrl)
    }
  })

  it('ids that would change the path are rejected before a request is sent', async () => {
    for (const id of ['', '..', '.', '1/2', '1?x=', '1#', '%2e%2e', '1 2', 'a'.repeat(300)]) {
      assert.equal(
        (await captureProblem(fixture.provider.send({ phoneNumberId: id }, textMessage, signal))).code,
        'upstream_error',
      )
      assert.equal(
        (await captureProblem(fixture.provider.deleteLink(sender, id, signal))).code,
        'upstream_error',
      )
    }
    assert.deepEqual(fixture.peer.asked, [])
  })
})

describe('Adapter: any response', () => {
  const calls: Record<keyof Provider, () => Promise<unknown>> = {
    send: sendText,
    findSent: () => fixture.provider.findSent(sender, 'r', signal),
    uploadMedia: () => fixture.provider.uploadMedia(sender, smallFile, signal),
    mediaInfo: () => fixture.provider.mediaInfo('5', signal),
    downloadMedia: () => downloadFile(fixture.provider, `${fixture.peer.url}/f`, 100, signal),
    phoneNumbers: () => fixture.provider.phoneNumbers('5', signal),
    phoneNumber: () => fixture.provider.phoneNumber(sender, signal),
    subscribe: () => fixture.provider.subscribe('5', undefined, signal),
    createTemplate: () => fixture.provider.createTemplate('5', seasonSale, signal),
    editTemplate: () => fixture.provider.editTemplate('5', { components: [] }, signal),
    listTemplates: () => fixture.provider.listTemplates('5', 'x', signal),
    archiveTemplates: () => fixture.provider.archiveTemplates('5', ['1'], signal),
    unarchiveTemplates: () => fixture.provider.unarchiveTemplates('5', ['1'], signal),
    deleteTemplate: () => fixture.provider.deleteTemplate('5', { name: 'x' }, signal),
    uploadSample: () => fixture.provider.uploadSample(smallFile, signal),
    createLink: () => fixture.provider.createLink(sender, { message: 'Hi', qrFormat: null }, signal),
    updateLink: () => fixture.provider.updateLink(sender, { code: 'A', message: 'Hi' }, signal),
    findLink: () => fixture.provider.findLink(sender, 'A', signal),
    listLinks: () => fixture.provider.listLinks(sender, signal),
    deleteLink: () => fixture.provider.deleteLink(sender, 'A', signal),
  }
  const memberName = fc.constantFrom(
    'error',
    'code',
    'error_subcode',
    'error_data',
    'details',
    'message',
    'data',
    'id',
    'paging',
    'cursors',
    'after',
    'next',
    'messages',
    'success',
    'h',
    'url',
    'fbtrace_id',
    'is_transient',
    'failed_templates',
  )
  const value = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(...refusalRules.flatMap((rule) => [...rule.codes.flat(), ...(rule.subcodes ?? [])])),
    fc.constant(TOKEN),
  )
  const { node } = fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      value,
      fc.dictionary(
        fc.oneof({ weight: 5, arbitrary: memberName }, { weight: 1, arbitrary: fc.string() }),
        tie('node'),
        { maxKeys: 4 },
      ),
      fc.array(tie('node'), { maxLength: 3 }),
    ),
  }))
  const errorBody = fc.record({ error: fc.dictionary(memberName, node, { maxKeys: 6 }) })
  const body = fc.oneof(
    node.map((json) => JSON.stringify(json)),
    errorBody.map((json) => JSON.stringify(json)),
    fc.string(),
    fc.uint8Array({ maxLength: 50 }),
  )
  const answer = fc.record({
    status: fc.oneof(
      fc.constantFrom(200, 200, 400, 401, 404, 429, 500, 503),
      fc.integer({ min: 200, max: 599 }),
    ),
    body,
    headers: fc.dictionary(
      fc.constantFrom('Retry-After', 'X-Business-Use-Case-Usage', 'Location', 'Content-Encoding'),
      fc
        .oneof(fc.json({ maxDepth: 2 }), fc.constantFrom('1e9', '-1', 'gzip', 'NaN'))
        .filter((text) => /^[\x20-\x7e]*$/.test(text)),
      { maxKeys: 2 },
    ),
  })

  it('returns a result or a valid problem, and never exposes the token', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...(Object.keys(calls) as (keyof Provider)[])),
        fc.array(answer, { minLength: 1, maxLength: 3 }),
        async (name, answers) => {
          fixture.peer.answers.length = 0
          queueAnswers(...answers)
          const problem = await calls[name]().then(
            () => undefined,
            (thrown: unknown) => thrown,
          )
          if (problem === undefined) return
          assert.ok(problem instanceof Problem, `${name}: ${String(problem)}`)
          const exposed = JSON.stringify([problem.message, problem.extras, problem.headers])
          assert.ok(
            problem.message.length > 10 &&
              problem.status >= 400 &&
              !exposed.includes(TOKEN) &&
              !exposed.includes('\\u0000'),
            exposed,
          )
          assert.match(problem.headers['Retry-After'] ?? '1', /^[1-9]\d{0,4}$/)
        },
      ),
      { numRuns: 600 },
    )
  })
})
