import assert from 'node:assert/strict'
import { it } from 'node:test'
import {
  type RecordedExchange,
  recordedExchanges,
  recordedIds,
  seasonSale,
} from '../provider/recorded-exchanges.ts'
import { assertError, writeAsCustomer } from './sandbox-calls.ts'
import { everySandbox, type SandboxFixture } from './sandbox-fixture.ts'

/** Asserts that `actual` has every key of `expected`, recursively, with a value of the same type. */
const assertShape = (actual: unknown, expected: unknown, path: string): void => {
  if (Array.isArray(expected)) {
    assert.ok(Array.isArray(actual), path)
    expected.slice(0, 1).forEach((item) => assertShape(actual[0], item, `${path}[0]`))
  } else if (expected !== null && typeof expected === 'object') {
    for (const [key, value] of Object.entries(expected))
      assertShape((actual as Record<string, unknown> | undefined)?.[key], value, `${path}.${key}`)
  } else assert.equal(typeof actual, typeof expected, path)
}

/** Error codes to inject for exchanges whose recorded response is the provider's failure. */
const faultCodes: Record<string, number> = { 'A1 no permission': 200, 'A1 throttled': 4, 'A1 fault': 2 }

/** Plays a recorded request against the sandbox. `linkCode` is the short link that updates refer to. */
const assertExchange = async (
  fixture: SandboxFixture,
  exchange: RecordedExchange,
  linkCode: string,
): Promise<void> => {
  const { name, request, response } = exchange
  if (faultCodes[name] !== undefined)
    await fixture.control('POST', 'faults', { on: 'links', code: faultCodes[name], times: 1 })
  const path = name === 'A1 no such number' ? request.path.replace(fixture.number, '1') : request.path
  let body = request.body as Record<string, unknown> | undefined
  if (body?.code !== undefined) body = { ...body, code: linkCode }
  if (name === 'A1 too long') body = { prefilled_message: 'x'.repeat(141) }
  if (body?.override_callback_uri !== undefined)
    body = { ...body, override_callback_uri: 'http://127.0.0.1:9/' }
  const query = request.query ? `?${new URLSearchParams(request.query)}` : ''
  const token: Record<string, string> = name === 'A1 bad token' ? { Authorization: 'Bearer other' } : {}
  const reply = await fixture.call(
    request.method,
    `${request.unversioned ? '' : 'v23.0/'}${path}${query}`,
    body,
    token,
  )
  assert.equal(reply.status, response.status, `${name}: ${JSON.stringify(reply.body)}`)
  assertShape(reply.body, response.body, name)
  const recordedError = (
    response.body as { error?: { code: number; message: string; error_subcode?: number } }
  ).error
  if (recordedError)
    assert.deepEqual(
      [reply.body.error.code, reply.body.error.message, reply.body.error.error_subcode],
      [recordedError.code, recordedError.message, recordedError.error_subcode],
      name,
    )
}

everySandbox('Sandbox: protocol', (withSandbox) => {
  it('responses to the recorded requests have the recorded status and structure', async () => {
    await withSandbox(
      async (fixture) => {
        await writeAsCustomer(fixture)
        const code = (
          await fixture.call('POST', `v23.0/${fixture.number}/message_qrdls`, { prefilled_message: 'x' })
        ).body.code as string
        await fixture.control('PUT', 'templates', {
          templates: [
            {
              ...seasonSale,
              id: '1689556908129832',
              account_id: fixture.account,
              name: 'to_archive',
              status: 'APPROVED',
            },
          ],
        })
        const playable = recordedExchanges.filter(
          ({ name }) => !['A2 empty', 'A4 delete', 'A7 subscribe elsewhere'].includes(name),
        )
        for (const exchange of playable) await assertExchange(fixture, exchange, code)
        await fixture.control('DELETE', 'faults')
        const { body } = await fixture.call(
          'DELETE',
          `v23.0/${fixture.account}/message_templates?name=season_sale`,
        )
        assert.deepEqual(body, { success: true })
        assertError(
          await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, seasonSale),
          400,
          100,
        )
        assert.equal(
          (await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, seasonSale)).body.error
            .error_subcode,
          2388023,
        )
        await fixture.call('DELETE', `v23.0/${fixture.number}/message_qrdls/${code}`)
      },
      { number: recordedIds.phone, account: recordedIds.account },
    )
  })
})
